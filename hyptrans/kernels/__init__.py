"""The row-wise tails of the layers: everything between two matrix products, in one pass each.

:mod:`~hyptrans.kernels.operators` is what layers call. Every operator has its formula in plain
torch (``eager``, the reference and the fall-back) and kernels with an analytic gradient: numba for
the CPU, Triton for CUDA. :mod:`~hyptrans.kernels.backend` chooses; ``HYPTRANS_KERNELS=eager`` turns
the kernels off, for example after a change of a formula.
"""
