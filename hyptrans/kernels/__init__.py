"""Operators between two matrix products, each in one pass over memory.

An operator's file has side by side the plain formula, the kernels for the CPU (numba) and for CUDA
(Triton), forward and backward, and the cases on which kernels and formula must agree:
:class:`hyptrans.kernels.operator.Operator`. Operators without a kernel for a device run the
formula there. :mod:`~hyptrans.kernels.products` are the matrix products themselves.
``HYPTRANS_KERNELS=eager`` turns all kernels off, for example after a change of a formula.
"""

from hyptrans.kernels import check, operator

operator.verify_with(check.trusted)
