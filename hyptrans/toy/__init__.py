"""A generated language pair with gold trees, English and Tovari, which models learn in minutes.

Imports neither torch nor fairseq.
"""
