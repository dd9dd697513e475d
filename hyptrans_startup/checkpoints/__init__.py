"""Checkpoints: written whole, read with care, and built within what they hold."""
