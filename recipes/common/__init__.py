"""What the recipes share: running commands, scoring, results and tables."""
