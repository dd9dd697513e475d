"""What any part may use: user errors, whole files, steps done once, progress, provenance, extras.

Imports neither torch nor fairseq.
"""
