"""Scores of translations and significance of differences."""
