"""States of words: compute them with an encoder, pool them over subwords, store them in a file."""
