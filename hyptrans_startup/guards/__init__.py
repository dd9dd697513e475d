"""What stands between a file from a stranger and fairseq; SECURITY.md says what it is held to."""
