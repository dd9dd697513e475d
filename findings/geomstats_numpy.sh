#!/usr/bin/env bash
# Guess: geomstats 2.8.0, which requires numpy>=1.18.1, runs with the numpy that pip picks.
# Seen: with numpy 2.4 every import of it fails: its numpy backend asks for trapz, which numpy 2.4 has dropped.
# With numpy 2.3.5 it works.
# Matters: an environment with another package that wants numpy 2.4 has no geomstats, and pip check is content.
# Versions: geomstats 2.8.0, numpy 2.4.6 and 2.3.5; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
try() {
    "$python" -m pip check
    "$python" -c 'import geomstats.geometry.hyperboloid; print("imported")' 2>&1 | tail -n 1 | sed 's/ (.*//' || true
}
packages geomstats==2.8.0 numpy==2.4.6 scipy==1.17.1
try > "$work/new"
"$python" -m pip install --quiet numpy==2.3.5
try > "$work/old"
"$python" - "$work" <<'PY'
import sys
from pathlib import Path

from finding import seen, versions

versions("geomstats", "numpy")
for name, last in (("new", "ImportError: cannot import name 'trapz' from 'numpy'"), ("old", "imported")):
    said = Path(sys.argv[1], name).read_text().splitlines()
    seen(f"pip check and import, {name} numpy", said, ["No broken requirements found.", last])
PY
