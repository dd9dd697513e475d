"""The operators on the CPU: numba kernels, and the threads that work them off."""
