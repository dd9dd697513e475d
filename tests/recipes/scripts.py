"""Scripts of the recipes, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"


def run_script(script, *options):
    """Run a script, named below ``recipes/``, to its end."""
    return subprocess.run(
        [sys.executable, str(RECIPES / script), *options],
        cwd=ROOT,
        # threads that wait for each other on a busy machine cost more than they save
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
