"""Operators between tangents of the Poincare ball, with kernels for the CPU alone."""
