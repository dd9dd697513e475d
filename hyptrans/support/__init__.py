"""Helpers for all parts: user errors, whole files, steps done once, progress, provenance, extras.

Imports neither torch nor fairseq.
"""
