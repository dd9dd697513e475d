#!/usr/bin/env bash
# Guess: in a resumed training fairseq's `wall` counts on from the seconds of the part before, which the checkpoint holds.
# Seen: it is 0 in every line of the resumed part, however long that takes; only the part that began from nothing counts.
# Matters: the time of a training read from the last line of its log is 0 once it was interrupted.
# Versions: fairseq 0.12.2 (edited to import on Python 3.11), hydra-core 1.3.8, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
fairseq_packages
"$python" - "$work" <<'PY'
import re
import subprocess
import sys
from pathlib import Path

from finding import seen, versions

versions("fairseq", "hydra-core", "omegaconf", "torch")
work = Path(sys.argv[1])
lines = [f"a{i} b{i % 7} c{i % 3}" for i in range(2000)]
for side in ("x", "y"):
    (work / f"train.{side}").write_text("\n".join(lines) + "\n")


def run(program: str, *words: str) -> str:
    done = subprocess.run([sys.executable, "-m", f"fairseq_cli.{program}", *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return done.stdout + done.stderr


text = ["--source-lang", "x", "--target-lang", "y", "--trainpref", f"{work}/train", "--validpref", f"{work}/train"]
run("preprocess", *text, "--destdir", f"{work}/bin")
how = ["--arch", "transformer_tiny", "--optimizer", "adam", "--lr", "1e-3", "--batch-size", "8", "--disable-validation"]
how += ["--log-format", "simple", "--log-interval", "50", "--save-dir", f"{work}/run", "--num-workers", "0", "--cpu"]
logs = [run("train", f"{work}/bin", *how, "--max-update", updates) for updates in ("300", "600")]
walls = [[int(one) for one in re.findall(r"train_inner .* wall=(\d+)", log)] for log in logs]
print(*walls)
seen("seconds after 300 updates are above 0", walls[0][-1] > 0, True)
seen("seconds in the resumed part", set(walls[1]), {0})
PY
