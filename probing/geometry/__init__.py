"""How a model uses its space: radii, flatness and Gromov's delta of its states."""
