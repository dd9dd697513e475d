"""Hyperbolic geometry as pure functions on tensors; imports torch alone."""
