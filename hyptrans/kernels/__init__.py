"""Operators between two matrix products, each in one pass over memory.

An operator's file has side by side its formula in plain torch (of :mod:`hyptrans.geometry` where it
is one of geometry) and the kernels that compute the same, forward and backward: numba's for the
CPU, and for some operators Triton's for CUDA. :func:`~hyptrans.kernels.backend.backend` chooses.
:mod:`~hyptrans.kernels.products` are the matrix products themselves. A kernel is here because it
alone makes a whole step of some architecture at least 1.15 times as fast.
``HYPTRANS_KERNELS=eager`` turns all kernels off, for example after a change of a formula.
"""
