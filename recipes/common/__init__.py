"""Code that the recipes share: commands, scoring, results and tables."""
