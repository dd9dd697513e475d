"""Scripts of the recipes, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"


def run_script(name, *options, env=os.environ):
    """Run a recipe, or a module below it, to its end: ``python -m recipes.NAME``."""
    return subprocess.run(
        [sys.executable, "-m", f"recipes.{name}", *options],
        cwd=ROOT,
        # threads that wait for each other on a busy machine cost more than they save
        env={**env, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
