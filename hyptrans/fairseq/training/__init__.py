"""Checks of a training: harmful flags, non-finite values, resuming."""
