"""The commands behind the scripts of ``data-prep/``: options, and a plan for each data set."""
