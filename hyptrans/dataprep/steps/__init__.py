"""What happens to text on its way to a data set: tokenize, clean, learn subwords, binarize."""
