"""What a model does with its space: radii, directions and Gromov's delta of its states."""
