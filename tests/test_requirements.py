"""pyproject.toml declares what the code imports: nothing is missing, nothing is left over."""

import ast
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
USED = ["hyptrans", "probing", "recipes"]
OWN = {"hyptrans", "hyptrans_startup", "probing", "recipes", "tests"}
NAMES = {"fairseq_cli": "fairseq", "hydra": "hydra-core", "yaml": "pyyaml"}
# what it needs is declared, and it comes without that
ALONE = {"fairseq"}
# brought by numba, onnxscript, transformers and torch, which know best what version fits them
BROUGHT = {"llvmlite", "onnx-ir", "tokenizers", "typing-extensions"}
FOR_DEVELOPERS = ("test", "dev")
# run, not imported
TOOLS = {"pytest-xdist", "ruff", "mypy", "types-tqdm", "types-pyyaml"}
TOOLS |= {"mkdocs-material", "mkdocstrings"}
# imported by fairseq and the trainer of transformers, some only for a flag
OF_OTHERS = {"hydra-core", "bitarray", "tensorboard", "wandb"}
# the CUDA builds of torch bring it
OF_TORCH = {"triton"}


def imported(*folders):
    """Packages that the code of some folders imports, each with one file that does."""
    found = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        # tests name modules that are not there, to see what happens
        by_name = ["importorskip"] if path.is_relative_to(ROOT / "tests") else ["require"]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in modules(node, by_name):
                module = name.partition(".")[0]
                if module not in sys.stdlib_module_names | OWN:
                    found[canonicalize_name(NAMES.get(module, module))] = str(path)
    return found


def modules(node, by_name):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        # what a package imports of itself is in no list
        return [node.module] if node.module and not node.level else []
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = getattr(node.func, "id", getattr(node.func, "attr", None))
        return [node.args[0].value] if called in by_name else []
    return []


def declared():
    """Packages of pyproject.toml, by extra; those of every installation under the name ''."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = {"": project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: {canonicalize_name(Requirement(line).name) for line in lines} - {"hyptrans"}
        for extra, lines in lists.items()
    }


def of_users():
    return set().union(
        *(names for extra, names in declared().items() if extra not in FOR_DEVELOPERS)
    )


def test_every_import_is_declared():
    known = BROUGHT | ALONE | set().union(*declared().values())
    found = imported(*USED, "tests")
    assert {name: path for name, path in found.items() if name not in known} == {}


def test_package_imports_no_developer_dependency():
    known = BROUGHT | ALONE | of_users() | OF_TORCH
    found = imported(*USED)
    assert {name: path for name, path in found.items() if name not in known} == {}


def test_everything_declared_is_imported():
    assert of_users() - imported(*USED).keys() == OF_OTHERS
    ours = set().union(*(declared()[extra] for extra in FOR_DEVELOPERS))
    assert ours - imported(*USED, "tests").keys() == TOOLS
