"""Where pairs of sentences come from: archives, markup, the hub, downloads, tables."""
