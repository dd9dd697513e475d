"""Model folders: written and read, their card, and the hub that they come from and go to."""
