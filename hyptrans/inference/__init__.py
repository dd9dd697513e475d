"""Trained models at work: from raw text to raw text, scores and states, and as folders to share."""
