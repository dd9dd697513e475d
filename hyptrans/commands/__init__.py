"""The commands of ``hyptrans``, a file each."""
