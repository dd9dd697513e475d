"""The operators on CUDA: Triton kernels."""
