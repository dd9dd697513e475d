#!/usr/bin/env bash
# What needs a CUDA device, in one command of at most 9 minutes: the Triton kernels' tests, half
# precision against float32, launches of training steps, and the speed of every architecture.
#
# example: recipes/benchmark/gpu.sh runs/gpu
set -euo pipefail

usage() {
    echo "usage: ${0##*/} [DIR] [-- OPTION...]"
    echo "  DIR     where logs and gpu.json go (default: runs/gpu)"
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
    # without pip: a Python of a distribution may lack what puts pip into an environment
    "$PYTHON" -m venv --without-pip runs/wheels/venv
    "$PYTHON" -m pip --python runs/wheels/venv/bin/python install --quiet --no-index --no-deps \
        runs/wheels/*.whl
    PYTHON=$PWD/runs/wheels/venv/bin/python
    site=$("$PYTHON" -c 'import site; print(site.getsitepackages()[0])')
    # torch where it is, and the package itself without building it: its hook's file, and its folder
    printf '%s\n' "$torch" > "$site/zz_torch.pth"
    # Python reads such files in the order of their names
    pwd > "$site/a_repository.pth" && cp hyptrans.pth "$site"
fi
if ! "$PYTHON" -c 'import hyptrans, pytest, triton'; then
    echo "error: $PYTHON lacks what the tests need: pip install --editable '.[test]'" >&2
    exit 2
fi

# the kernels themselves, whatever the caller has been trying out
unset TRITON_INTERPRET HYPTRANS_KERNELS
export PYTHONUNBUFFERED=1
rm -f "$out"/{gpu,parts,speed}.json "$out"/{device,tests,half_precision,launches,speed}.log
failed=()

# step NAME SECONDS COMMAND...: what is not done in time is stopped, with what it has written kept
step() {
    local name=$1 seconds=$2
    shift 2
    echo
    echo "== $name: $*"
    timeout "$seconds" "$@" 2>&1 | tee "$out/$name.log" || failed+=("$name")
}

"$PYTHON" -c 'import torch, triton
print(torch.cuda.get_device_name(), "torch", torch.__version__, "triton", triton.__version__)' |
    tee "$out/device.log"
several=()
! "$PYTHON" -c 'import xdist' 2> /dev/null || several=(--numprocesses 6)
# a test that is skipped must say so: -ra is pytest's default here
step tests 90 "$PYTHON" -m pytest -m gpu "${several[@]}" tests/kernels/test_triton_kernels.py
step half_precision 60 "$PYTHON" -m pytest -m slow "${several[@]}" \
    tests/training/test_half_precision.py --device cuda
step launches 150 "$PYTHON" -m recipes.benchmark.speed --device cuda --launches \
    --json "$out/parts.json"
step speed 210 "$PYTHON" -m recipes.benchmark.speed --device cuda --precision float32 bfloat16 \
    --json "$out/speed.json" "$@"

"$PYTHON" - "$out" << 'END'
import json, pathlib, sys

out = pathlib.Path(sys.argv[1])
logs = {log.stem: log.read_text(errors="replace").splitlines()[-1:] for log in out.glob("*.log")}
found = {path.stem: json.loads(path.read_text()) for path in out.glob("*.json") if path.stem != "gpu"}
(out / "gpu.json").write_text(json.dumps({"last lines": logs, **found}, indent=1) + "\n")
END
echo
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed, or not done in time: ${failed[*]}; logs and gpu.json are in $out"
    exit 1
fi
echo "all passed; logs and gpu.json are in $out"
