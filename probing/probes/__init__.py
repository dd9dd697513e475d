"""Probes: maps from states to points, their training and files, metrics and baselines."""
