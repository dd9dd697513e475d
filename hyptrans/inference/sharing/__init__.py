"""Model folders: reading and writing them, their card, and exchange with the hub."""
