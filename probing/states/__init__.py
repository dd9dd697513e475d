"""States of words: out of a checkpoint's encoder, pooled over subwords, in a file."""
