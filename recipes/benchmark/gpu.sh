#!/usr/bin/env bash
# What needs a CUDA device, in one command: the Triton kernels' tests, the tests of half precision
# against float32 and of long trainings, and the speed of every architecture against its twin.
#
# example: recipes/benchmark/gpu.sh runs/gpu
#
# The kernels have so far been tested in Triton's interpreter and through its compiler only: they
# have not run on a GPU, and no figure from one is recorded anywhere. What this prints is the first.
set -euo pipefail

usage() {
    echo "usage: ${0##*/} [DIR] [-- OPTION...]"
    echo "  DIR     where logs and speed.json go (default: runs/gpu)"
    echo "  OPTION  further options of speed.py, such as --rows hybonet"
    echo "Wheels in runs/wheels, which gpu_bundle.sh puts there, are installed first, without a network."
    echo "PYTHON names the interpreter (default: that of .venv, which is built where it is missing)."
}

case "${1-}" in
-h | --help)
    usage
    exit
    ;;
esac
out=runs/gpu
if [ $# -gt 0 ] && [ "$1" != -- ]; then
    out=$1
    shift
fi
if [ "${1-}" = -- ]; then
    shift
elif [ $# -gt 0 ]; then
    usage >&2
    exit 2
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."

# the environment of the Makefile, whose torch for Linux is built for CUDA
if [ -z "${PYTHON-}" ]; then
    [ -e .venv/.tests ] || make .venv/.tests
    PYTHON=.venv/bin/python
fi
if ! "$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
    echo "error: the torch of $PYTHON finds no CUDA device" >&2
    exit 2
fi
if compgen -G "runs/wheels/*.whl" > /dev/null; then
    torch=$("$PYTHON" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])')
    "$PYTHON" -m venv runs/wheels/venv
    PYTHON=$PWD/runs/wheels/venv/bin/python
    "$PYTHON" -m pip install --quiet --no-index --no-deps runs/wheels/*.whl
    site=$("$PYTHON" -c 'import site; print(site.getsitepackages()[0])')
    # torch where it is, and the package itself without building it: its hook's file, and its folder
    printf '%s\n' "$torch" > "$site/zz_torch.pth"
    cp hyptrans.pth "$site" && pwd > "$site/hyptrans_repository.pth"
fi
if ! "$PYTHON" -c 'import hyptrans, pytest, triton'; then
    echo "error: $PYTHON lacks what the tests need: pip install --editable '.[test]'" >&2
    exit 2
fi

# the kernels themselves, whatever the caller has been trying out
unset TRITON_INTERPRET HYPTRANS_KERNELS
failed=()

step() {
    local name=$1
    shift
    echo
    echo "== $name: $*"
    "$@" 2>&1 | tee "$out/$name.log" || failed+=("$name")
}

"$PYTHON" -c 'import torch, triton
print(torch.cuda.get_device_name(), "torch", torch.__version__, "triton", triton.__version__)' |
    tee "$out/device.log"
# a test that is skipped must say so: -ra is pytest's default here
step tests "$PYTHON" -m pytest -m gpu tests/kernels/test_triton_kernels.py
step half_precision "$PYTHON" -m pytest -m slow tests/training/test_half_precision.py --device cuda
step soak "$PYTHON" -m pytest -m slow tests/training/test_soak.py --device cuda
step speed "$PYTHON" -m recipes.benchmark.speed --device cuda --bf16 --json "$out/speed.json" "$@"

echo
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}; logs are in $out"
    exit 1
fi
echo "all passed; logs and speed.json are in $out"
