"""Data folders, their dictionaries and sets."""
