"""The encoder-decoder that all architectures share, in torch alone; each supplies its parts."""
