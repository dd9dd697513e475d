"""What translations are worth, whether a difference is one, and how a training went."""
