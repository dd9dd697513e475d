"""Operators between two matrix products, each in one pass over memory.

An operator's file has its formula in plain torch (from :mod:`hyptrans.geometry` if it belongs to
geometry) beside the kernels that compute the same, forward and backward: numba for the CPU and, for
some operators, Triton for CUDA. :mod:`~hyptrans.kernels.backend` chooses between them and runs
those of the CPU. :mod:`~hyptrans.kernels.products` has the matrix products themselves.
``HYPTRANS_KERNELS=eager`` turns all kernels off, for example after a change of a formula.
"""
