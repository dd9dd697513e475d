"""What the Lorentz architectures share: embedding, logits, attention's mix, manifold."""
