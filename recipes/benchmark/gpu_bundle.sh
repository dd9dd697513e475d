#!/usr/bin/env bash
# Wheels for a machine that has torch and a GPU but no network: what gpu.sh needs beside torch.
#
# example: recipes/benchmark/gpu_bundle.sh && PYTHON=python3.12 recipes/benchmark/gpu.sh
#
# Run where a network, a compiler and that machine's version of Python are; carry the folder along.
set -euo pipefail

usage() {
    echo "usage: ${0##*/} [DIR]"
    echo "  DIR  where the wheels go (default: runs/wheels, which git ignores); at most 60 MB"
    echo "BUNDLE_PYTHON names a Python of the version that the other machine has (default: python3.12)."
}

case "${1-}" in
-h | --help)
    usage
    exit
    ;;
-*)
    usage >&2
    exit 2
    ;;
esac
if [ $# -gt 1 ]; then
    usage >&2
    exit 2
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(realpath -m "${1-$root/runs/wheels}")
python=${BUNDLE_PYTHON-python3.12}
if ! "$python" -c 'import venv'; then
    echo "error: $python is not there or lacks the module venv: name another by BUNDLE_PYTHON" >&2
    exit 2
fi
mkdir -p "$out"
# of an earlier run; whatever else is there stays
rm -f "$out"/*.whl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv"
pip() { "$work/venv/bin/python" -m pip --disable-pip-version-check "$@"; }
pip wheel --quiet --no-deps --wheel-dir "$out" fairseq==0.12.2 antlr4-python3-runtime==4.9.3
pip download --quiet --no-deps --only-binary=:all: --dest "$out" \
    omegaconf==2.3.1 hydra-core==1.3.8 PyYAML bitarray regex \
    "geoopt>=0.5.1" scipy numpy "safetensors>=0.8" "sentencepiece>=0.2.2" tqdm \
    "sacrebleu>=2.3" portalocker tabulate colorama lxml \
    "pytest<8.4" pytest-xdist execnet pluggy iniconfig packaging
# examples and tests are a seventh of all bytes
"$work/venv/bin/python" - "$out" <<'END'
import pathlib, sys, zipfile

for path in pathlib.Path(sys.argv[1]).glob("*.whl"):
    if path.name.startswith(("fairseq-", "numpy-", "scipy-")):
        slim = path.with_suffix(".slim")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(slim, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                if "/examples/" not in name and "/tests/" not in name:
                    new.writestr(old.getinfo(name), old.read(name))
        slim.replace(path)
END
du -sh "$out"
