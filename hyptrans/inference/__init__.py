"""Use of trained models: translating raw text, scores, states, and model folders to share."""
