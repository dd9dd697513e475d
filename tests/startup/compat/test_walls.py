"""Each fix is needed on these versions, and each does its work."""

import importlib
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from packaging.version import Version

from hyptrans_startup import STEPS
from tests.startup.compat import walls as hit

PYTHON = sys.version_info[:2]
NUMPY_ALIAS = "AttributeError: module 'numpy' has no attribute"

# function of `hit` -> fix, whether the wall stands on these versions, the error without the fix
WALLS = {
    "mutable_default": ("mutable_default", PYTHON >= (3, 11), "ValueError: mutable default"),
    "mutable_default_of_a_plugin": (
        "mutable_default",
        PYTHON >= (3, 11),
        "ValueError: mutable default",
    ),
    "no_find_module": ("no_find_module", PYTHON >= (3, 12), "has no attribute 'find_module'"),
    "no_typing_io": ("no_typing_io", PYTHON >= (3, 13), "No module named 'typing.io'"),
    "unexpected_etype": (
        "unexpected_etype",
        PYTHON >= (3, 10),
        "TypeError: print_exception() ",
    ),
    "unread_broadcast": ("unread_broadcast", True, "Weights only load failed"),
    "mask_type_undefined": ("mask_type_undefined", True, "RuntimeError: Mask Type should be"),
    **{
        f"numpy_alias_removed_from_{place}": (
            "numpy_alias_removed",
            Version(np.__version__) >= Version("1.24"),
            NUMPY_ALIAS,
        )
        for place in ("masks", "the_crf")
    },
    **{
        f"numpy_alias_removed_from_{place}": (
            "numpy_alias_removed",
            Version(np.__version__) >= Version("2"),
            NUMPY_ALIAS,
        )
        for place in ("token_blocks", "language_pairs")
    },
    "numpy_interpolation_removed": (
        "numpy_interpolation_removed",
        Version(np.__version__) >= Version("2.4"),
        "TypeError: percentile() got an unexpected keyword argument 'interpolation'",
    ),
    "refs_not_strings": (
        "refs_not_strings",
        Version(sacrebleu.__version__) >= Version("2.6"),
        "refs` should be a sequence of strings",
    ),
    "deprecated_autocast": ("deprecated_autocast", True, "FutureWarning: `torch.cuda.amp"),
    "bf16_means_tpu": ("bf16_means_tpu", True, "AttributeError: 'NoneType' object has no attr"),
    "pytest_stands_first": (
        "pytest_stands_first",
        PYTHON >= (3, 11),
        "ValueError: mutable default",
    ),
}
# without these fixes fairseq cannot be imported at all
AT_IMPORT = ("mutable_default", "no_find_module", "no_typing_io")


@pytest.fixture(scope="module")
def without_fix(run):
    """What happens at every wall when its fix is left out."""

    def outcomes(skip, names):
        script = Path(hit.__file__).resolve()
        done = run(
            "python",
            script,
            ",".join(names),
            cwd=script.parent,
            HYPTRANS_STARTUP_SKIP=",".join(skip),
        )
        lines = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
        return {line[0]: line[1] for line in lines if line[0] in names}

    # one process for all walls that are met after fairseq is imported
    late = [name for name in WALLS if WALLS[name][0] not in AT_IMPORT]
    # the bucket sizes come before the number of tokens, so this wall hides the one behind it
    front = {WALLS[name][0] for name in late} - {"numpy_interpolation_removed"}
    found = outcomes(front, late) | outcomes(
        ["numpy_interpolation_removed"], ["numpy_interpolation_removed"]
    )
    for name in set(WALLS) - set(late):
        found |= outcomes([WALLS[name][0]], [name])
    return found


@pytest.mark.parametrize("wall", WALLS)
def test_wall_stands_without_its_fix(wall, without_fix):
    _, stands, error = WALLS[wall]
    if not stands:
        assert without_fix[wall] == "passed"
    else:
        assert error in without_fix[wall]


@pytest.mark.parametrize("wall", WALLS)
def test_wall_falls(wall, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", sys.argv[:1])
    getattr(hit, wall)()
    printed = capsys.readouterr()
    if wall == "unexpected_etype":
        assert "ZeroDivisionError: the error of the job" in printed.err
    if wall == "refs_not_strings":
        assert "BLEU = 100.00" in printed.out


def test_every_step_exists_and_tells_its_symptom():
    for home, step in (place.split(":") for steps in STEPS.values() for place in steps):
        module = importlib.import_module(f"hyptrans_startup.{home}")
        assert len(inspect.getdoc(getattr(module, step))) > 20, step


def test_every_wall_has_a_test():
    places = (place.partition(":") for steps in STEPS.values() for place in steps)
    assert {fix for fix, _, _ in WALLS.values()} == {
        step for home, _, step in places if home == "compat.walls"
    }
