"""What the study found: tables, pictures and comparisons, all of ``results.jsonl`` alone."""
