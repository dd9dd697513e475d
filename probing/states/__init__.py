"""States of words: out of an encoder, pooled over subwords, in a file."""
