"""Text and its dependency trees: read them and align them with an encoder's subwords."""
