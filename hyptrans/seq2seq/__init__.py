"""The one encoder-decoder, in torch alone; an architecture is the parts that it is made of."""
