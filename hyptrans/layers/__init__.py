"""Hyperbolic layers as ``torch.nn`` modules; usable without fairseq."""
