"""Structural probes: dependency trees read out of the states of an encoder."""
