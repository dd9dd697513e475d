"""What users type and read: flags, messages, lines."""
