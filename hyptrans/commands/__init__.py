"""The commands of ``hyptrans``, one file each."""
