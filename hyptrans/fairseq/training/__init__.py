"""What watches a training: flags that would lose a manifold, statistics, progress."""
