"""What stops fairseq on today's Python, torch, numpy and sacrebleu."""
