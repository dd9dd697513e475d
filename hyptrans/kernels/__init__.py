"""Operators between two matrix products, each in one pass over memory.

An operator's file has its formula in plain torch (from :mod:`hyptrans.geometry` if it belongs to
geometry) beside the kernels that compute the same, forward and backward: numba for the CPU and, for
some operators, Triton for CUDA. :func:`~hyptrans.kernels.backend.backend` chooses between them.
:mod:`~hyptrans.kernels.products` has the matrix products themselves. Each kernel here alone makes a
whole step of some architecture at least 1.15 times as fast.
``HYPTRANS_KERNELS=eager`` turns all kernels off, for example after a change of a formula.
"""
