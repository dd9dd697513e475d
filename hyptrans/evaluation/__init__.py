"""Scores of translations, significance of differences, and learning curves."""
