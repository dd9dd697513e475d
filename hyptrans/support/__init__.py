"""What any part may use: errors for users, whole-or-nothing files, progress, provenance, extras.

Imports neither torch nor fairseq.
"""
