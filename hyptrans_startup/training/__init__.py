"""What stops a training, or keeps it from going on."""
