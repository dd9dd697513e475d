"""Operators between two matrix products, each in one pass over memory.

An operator's file has side by side the plain formula, the kernel for the CPU (numba) and the one
for CUDA (Triton), forward and backward, and the cases that hold the kernels to the formula:
:class:`hyptrans.kernels.operator.Operator`. Operators without a kernel for a device run the
formula there. :mod:`~hyptrans.kernels.products` are the matrix products themselves.
``HYPTRANS_KERNELS=eager`` turns all kernels off, for example after a change of a formula.
"""

from hyptrans.kernels import check, operator

operator.verify_with(check.trusted)
