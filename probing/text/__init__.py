"""Dependency trees of text, and the way from words to an encoder's subwords."""
