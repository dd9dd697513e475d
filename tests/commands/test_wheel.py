"""What is installed does everything without the repository, from an empty folder."""

import os
import re
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(sys.executable).parent
SOURCES = ["setup.py", "pyproject.toml", "MANIFEST.in", "hyptrans.pth", "README.md", "LICENSE"]
SOURCES += ["CHANGELOG.md", "CITATION.cff", "hyptrans", "hyptrans_startup.py", "probing"]
TRAIN = "--optimizer adam --lr 1e-3 --criterion label_smoothed_cross_entropy --max-tokens 1000"

pytestmark = pytest.mark.slow


def call(*command, cwd, stdin=""):
    """Run a command with nothing of this environment's variables; returns its output."""
    variables = {"PATH": f"{Path(command[0]).parent}:/usr/bin:/bin", "HOME": str(cwd)}
    variables |= {"OMP_NUM_THREADS": "1"} if "OMP_NUM_THREADS" in os.environ else {}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=variables, input=stdin, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The scripts of an environment with the wheel, and this one's packages beneath it."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    # no index is asked: setuptools is this environment's
    build = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", "."]
    call(sys.executable, *build, cwd=folder)
    (wheel,) = (folder / "dist").iterdir()
    call(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    scripts = folder / "venv" / "bin"
    call(scripts / "python", "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=folder)
    own = Path(call(scripts / "python", "-c", "import site; print(*site.getsitepackages())",
                    cwd=folder).strip())  # fmt: skip
    # paths alone: what .pth files in these folders add, an editable install too, does not come
    beneath = [place for place in sys.path if Path(place).name == "site-packages"]
    (own / "beneath.pth").write_text("\n".join([*beneath, *site.getsitepackages()]))
    for name in ("fairseq-train", "fairseq-preprocess"):
        lines = (SCRIPTS / name).read_text().split("\n")
        (scripts / name).write_text("\n".join([f"#!{scripts / 'python'}", *lines[1:]]))
        (scripts / name).chmod(0o755)
    return scripts


def test_a_wheel_prepares_trains_translates_probes_and_exports(installed, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()

    def run(line, stdin=""):
        program, *words = line.split()
        return call(installed / program, *words, cwd=folder, stdin=stdin)

    place = call(
        installed / "python", "-c", "import hyptrans; print(hyptrans.__file__)", cwd=folder
    )
    assert Path(place).is_relative_to(installed.parent)
    assert (Path(place).parent / "serve" / "page" / "index.html").is_file()
    run("hyptrans prepare toy --out toy --train 600 --valid 60 --test 60")
    sets = " ".join(f"--{name} toy/{name}.en toy/{name}.qtv" for name in ("train", "valid", "test"))
    run(f"hyptrans prepare text {sets} --raw-text --vocab-size 400 --workers 1 --out data")
    run(
        "fairseq-train data/data-bin --user-dir hyptrans --arch hybonet_tiny --cpu --max-update 8 "
        f"--save-dir made {TRAIN}"
    )
    checkpoint = "made/checkpoint_last.pt"
    sentences = (folder / "toy" / "test.en").read_text()
    translated = run(f"hyptrans translate {checkpoint} --beam 2", sentences)
    assert translated.count("\n") == 60
    (folder / "output").write_text(translated)
    assert re.match(r"BLEU \d+\.\d\d nrefs:1\|", run("hyptrans score output toy/test.qtv"))
    trees = "--train toy/test.en.conllu --dev toy/valid.en.conllu --test toy/valid.en.conllu"
    run(
        f"hyptrans probe run --checkpoint {checkpoint} --data data {trees} --out probes --steps 5 "
        "--no-random --examples 1"
    )
    assert (folder / "probes" / "report.html").is_file()
    run(f"hyptrans export {checkpoint} --out model --test toy/test.en toy/test.qtv")
    assert "hybonet_tiny" in run("hyptrans info model")
    assert {path.name for path in folder.iterdir()} >= {"data", "made", "probes", "model"}
