"""Probes: maps of states to points, their training, metrics and baselines."""
