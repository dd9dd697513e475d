"""What translating takes where nothing is said, from Python and from the command line."""

BEAM = 5
"""Hypotheses that are kept of each sentence."""
LENPEN = 1.0
"""Power of its length by which a hypothesis's log-probability is divided."""
BATCH_TOKENS = 4000
"""Most tokens of a batch of sources, padding included."""
