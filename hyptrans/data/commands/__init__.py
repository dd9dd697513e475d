"""The commands of ``hyptrans prepare``: options, and a plan for each data set."""
