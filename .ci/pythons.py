"""Install the package on every Python found and run each command of fairseq there.

A Python for which torch cannot be installed is left out with a sentence. Exit status 1 where a
command failed, or where nothing was tried.

example: python .ci/pythons.py --ends
"""

from __future__ import annotations

import argparse
import glob
import os
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "runs" / "pythons"
MINORS = range(10, 15)
"""Of the versions 3.x that the package promises."""
WITHOUT_FAIRSEQ = ("3.14",)
"""Where fairseq 0.12.2 is not promised: there the package trains, translates and scores."""
FAIRSEQ = ["--no-deps", "fairseq==0.12.2"]
ELSEWHERE = (
    "~/.pyenv/versions/3.{}.*/bin/python",
    "~/.local/share/uv/python/cpython-3.{}.*/bin/python",
)
UPDATES = 30
SETS = {"train": 300, "valid": 20, "test": 20}


class Failed(Exception):
    """A command failed; its output is part of the message."""


def main() -> int:
    """Try the interpreters one after the other; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ends", action="store_true", help="only the oldest and the newest found")
    parser.add_argument("--only", nargs="+", metavar="3.x", help="only these versions")
    args = parser.parse_args()
    found = {f"3.{minor}": python for minor in MINORS if (python := interpreter(minor))}
    chosen = [version for version in found if args.only is None or version in args.only]
    if args.ends:
        chosen = list(dict.fromkeys([*chosen[:1], *chosen[-1:]]))
    outcomes = {version: outcome(version, found[version]) for version in chosen}
    for version, said in outcomes.items():
        print(f"Python {version}: {said}")
    passed = [version for version, said in outcomes.items() if said.startswith("passed")]
    failed = [version for version, said in outcomes.items() if said.startswith("failed")]
    if not passed:
        print("no Python from 3.10 to 3.14 was found for which torch can be installed")
    return int(bool(failed) or not passed)


def interpreter(minor: int) -> str | None:
    """Return a Python 3.minor that starts, None if there is none."""
    candidates = [shutil.which(f"python3.{minor}"), shutil.which("python3")]
    for pattern in ELSEWHERE:
        candidates += sorted(glob.glob(os.path.expanduser(pattern.format(minor))), reverse=True)
    code = f"import sys; sys.exit(sys.version_info[:2] != (3, {minor}))"
    for python in filter(None, candidates):
        # a name on the path may lead to another version, or to nothing
        if subprocess.run([python, "-c", code], capture_output=True).returncode == 0:
            return python
    return None


def outcome(version: str, python: str) -> str:
    """Install and try one interpreter; return what came of it."""
    folder = OUT / version
    try:
        shutil.rmtree(folder, ignore_errors=True)
        install = installer(python, folder / "venv")
        torch = shlex.split(os.environ.get("TORCH") or "torch")
        try:
            call([*install, *torch], folder)
        except Failed as error:
            return f"left out, as torch cannot be installed ({str(error).splitlines()[-1]})"
        call([*install, f"{ROOT}[torch]"], folder)
        translate(folder)
        call([*install, f"{ROOT}[transformers]"], folder)
        for words in alone(folder):
            call([str(folder / "venv" / "bin" / "hyptrans"), *words], folder)
        if version in WITHOUT_FAIRSEQ:
            return "passed, without fairseq"
        call([*install, f"{ROOT}[fairseq]"], folder)
        call([*install, *FAIRSEQ], folder)
        for command in commands(folder):
            call([str(folder / "venv" / "bin" / command[0]), *command[1:]], folder)
        check(folder)
    except Failed as error:
        return f"failed: {error}"
    return "passed"


def installer(python: str, venv: Path) -> list[str]:
    """Make a virtual environment; return the command that installs into it."""
    if uv := shutil.which("uv"):
        call([uv, "venv", "--python", python, str(venv)], ROOT)
        return [uv, "pip", "install", "--python", str(venv / "bin" / "python")]
    call([python, "-m", "venv", str(venv)], ROOT)
    return [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet"]


def translate(folder: Path) -> None:
    """Translate by a model that is part of the package, with nothing installed but its core."""
    python = str(folder / "venv" / "bin" / "python")
    call([python, "-c", "import importlib.util as u; assert not u.find_spec('fairseq')"], folder)
    code = "import hyptrans; print(hyptrans.load('tatoeba-en-de').translate(['Where is he?']))"
    call([python, "-c", code], folder)


def write_text(folder: Path) -> None:
    """Write a small text and its translation, which is its capitals."""
    draw = random.Random(0)
    for name, count in SETS.items():
        lines = [draw.choices("abcdefgh", k=draw.randint(1, 6)) for _ in range(count)]
        for side, change in (("en", str), ("de", str.upper)):
            text = "".join(change(" ".join(line)) + "\n" for line in lines)
            (folder / f"{name}.{side}").write_text(text)
    (folder / "input").write_text("a b\n\nc d\n")


def alone(folder: Path) -> Iterator[Sequence[str]]:
    """The road from a text to a model without fairseq, as a user types it."""
    write_text(folder)
    sets = [word for name in SETS for word in (f"--{name}", f"{name}.en", f"{name}.de")]
    yield ["prepare", "text", *sets, "--raw-text", "--vocab-size=40", "--out=data"]
    train = ["--max-tokens=400", f"--max-update={UPDATES}", "--device=cpu", "--out=run"]
    yield ["train", "data", "--arch=hybonet_plus_tiny", *train]
    yield ["info", "run/model"]


def commands(folder: Path) -> Iterator[Sequence[str]]:
    """The commands of fairseq on that text, as a user types them."""
    prefixes = [f"--{name}pref={name}" for name in SETS]
    train = ["--criterion=label_smoothed_cross_entropy", "--optimizer=adam", "--lr=1e-3", "--cpu"]
    train += ["--max-tokens=400", f"--max-update={UPDATES}", "--no-progress-bar", "--save-dir=ck"]
    model = ["--user-dir=hyptrans", "--path=ck/checkpoint_last.pt", "--cpu"]
    yield ["fairseq-preprocess", "-s=en", "-t=de", *prefixes, "--destdir=bin"]
    yield ["fairseq-train", "bin", "--user-dir=hyptrans", "--arch=hybonet_tiny", *train]
    yield ["fairseq-validate", "bin", *model, "--max-tokens=400"]
    yield ["fairseq-generate", "bin", *model, "--batch-size=20", "--results-path=out"]
    yield ["fairseq-interactive", "bin", *model, "--input=input"]
    yield ["fairseq-score", "--sacrebleu", "--sys=test.de", "--ref=test.de"]
    yield ["fairseq-eval-lm", "--help"]
    hydra = ["common.user_dir=hyptrans", "common.cpu=true", "model=hybonet_tiny"]
    hydra += ["task=translation", f"task.data={folder / 'bin'}", "criterion=cross_entropy"]
    hydra += ["optimizer=adam", "lr_scheduler=fixed", "optimization.lr=[0.001]"]
    hydra += ["optimization.max_update=1", "dataset.max_tokens=400", "checkpoint.no_save=true"]
    yield ["fairseq-hydra-train", *hydra]


def check(folder: Path) -> None:
    """Look at what the commands wrote."""
    written = (folder / "out" / "generate-test.txt").read_text()
    if written.count("\nD-") != SETS["test"]:
        raise Failed(f"{SETS['test']} sentences gave {written.count(chr(10) + 'D-')} translations")


def call(command: Sequence[str], folder: Path) -> None:
    """Run a command without the variables of this one's environment."""
    folder.mkdir(parents=True, exist_ok=True)
    outside = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    print(f"$ {shlex.join(command)}", flush=True)
    done = subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{Path(command[0]).name}: {done.stdout[-1000:]}{done.stderr[-2000:]}".strip())


if __name__ == "__main__":
    sys.exit(main())
