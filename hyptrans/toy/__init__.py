"""A generated language pair with gold trees, English and Tovari, learned in minutes.

Imports neither torch nor fairseq.
"""
