"""Checks and statistics of a training: harmful flags, non-finite values, points, resuming."""
