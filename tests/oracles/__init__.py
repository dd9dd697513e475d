"""Independent float64 forms in NumPy, written directly from the formulas; nothing of hyptrans."""
