"""Probes: maps of states to points, their training and file, metrics and baselines."""
