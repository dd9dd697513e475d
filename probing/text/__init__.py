"""Text and its dependency trees: parsed, read, and aligned with an encoder's subwords."""
