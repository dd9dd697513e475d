"""Graphs for ONNX Runtime, and the search over arrays that runs them."""
