"""Kernels of the Poincare ball on the CPU."""
