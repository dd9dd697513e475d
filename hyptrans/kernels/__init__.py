"""Operators between two matrix products, each in one pass over memory.

An operator's file has its formula in plain torch (from :mod:`hyptrans.geometry` if it belongs to
geometry) beside the kernels that compute the same, forward and backward: numba for the CPU and, for
some operators, Triton for CUDA. Long kernels have files of their own, ``_cpu`` and ``_cuda``.
:mod:`~hyptrans.kernels.backend` chooses between them and runs those of the CPU.
:mod:`~hyptrans.kernels.products` has the matrix products themselves, and the loss of logits.
``HYPTRANS_KERNELS=eager`` turns all kernels off, for example after a change of a formula.
"""
