"""The row-wise tails of the layers: everything between two matrix products, in one pass each.

:mod:`~hyptrans.kernels.operators` is what layers call, and :mod:`~hyptrans.kernels.backend` what
chooses. Points, normalization, lift and dropout have their formula in plain torch (``eager``, from
:mod:`hyptrans.geometry`: the reference and the fall-back) and kernels with an analytic gradient,
numba for the CPU and Triton for CUDA; attention of a few queries in one pass has a numba kernel
without a gradient. :mod:`~hyptrans.kernels.ball`, :mod:`~hyptrans.kernels.klein`,
:mod:`~hyptrans.kernels.weights` and :mod:`~hyptrans.kernels.hypformer` have kernels for the CPU
alone. :mod:`~hyptrans.kernels.products` are the matrix products themselves.
``HYPTRANS_KERNELS=eager`` turns all of it off, for example after a change of a formula.
"""
