"""Which part may import which: each part can be used without what lies above it."""

import ast

import pytest

from tests.programs import ROOT, python

# from the ground up; a part imports only itself and those before it
LAYERS = ["support", "geometry", "kernels", "layers", "seq2seq", "optim", "models"]
ABOVE = ["data", "toy", "evaluation", "inference", "fairseq", "commands", "serve"]
"""What nothing of those may import; the later ones stand on the earlier ones."""
DOOR = ROOT / "hyptrans" / "models" / "with_fairseq.py"
"""fairseq finds it by its path."""


def loaded(names, unwanted):
    """Return the unwanted modules that a fresh interpreter loads with some imports."""
    code = (
        f"import importlib, sys; [importlib.import_module(name) for name in {names}]; "
        f"print(*[name for name in {unwanted} if name in sys.modules])"
    )
    return python(code, cwd=ROOT).stdout.split()


@pytest.mark.parametrize(
    ("parts", "unwanted"),
    [
        (
            "hyptrans/__init__.py hyptrans/support/*.py probing/commands/cli.py",
            "torch numpy fairseq",
        ),
        ("hyptrans/data/**/*.py hyptrans/toy/*.py hyptrans/evaluation/**/*.py", "torch fairseq"),
        ("hyptrans/commands/*.py hyptrans/serve/command.py", "torch fairseq starlette uvicorn"),
        (
            "hyptrans/inference/text_translator.py hyptrans/inference/onnx/engine.py "
            "hyptrans/inference/beams.py hyptrans/serve/app.py",
            "torch onnxruntime",
        ),
        (
            "hyptrans/geometry/*.py hyptrans/kernels/**/*.py probing/text/trees.py "
            "probing/probes/*.py probing/report/results.py probing/report/page.py",
            "fairseq geoopt",
        ),
        (
            "hyptrans/layers/**/*.py hyptrans/seq2seq/*.py hyptrans/optim/*.py "
            "hyptrans/models/[!w_]*.py hyptrans/inference/**/*.py hyptrans/transformers/*.py "
            "hyptrans/train/*.py hyptrans/serve/*.py",
            "fairseq omegaconf",
        ),
    ],
)
def test_lower_layers_import_without_higher_ones(parts, unwanted):
    names = []
    for part in parts.split():
        files = sorted(ROOT.glob(part))
        assert files, part
        names += [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    assert loaded(names, unwanted.split()) == []


def imports(path):
    """Names of the modules that a file of ours imports, anywhere in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("layer", [*LAYERS, "inference", "fairseq"])
def test_no_layer_imports_from_a_higher_one(layer):
    whole = [*LAYERS, *ABOVE]
    higher = whole[whole.index(layer) + 1 :]
    above = ["probing", "recipes", *(f"hyptrans.{part}" for part in higher)]
    files = sorted((ROOT / "hyptrans" / layer).rglob("*.py"))
    assert files
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        if path != DOOR
        for name in imports(path)
        if any(name.startswith(part) for part in above)
    }
    assert wrong == set()


def test_only_training_imports_the_transformers_front_end():
    for path in [*(ROOT / "hyptrans").rglob("*.py"), *(ROOT / "probing").rglob("*.py")]:
        if path.parent.name not in ("transformers", "train"):
            assert not [name for name in imports(path) if name.startswith("hyptrans.transformers")]


def test_startup_hook_imports_nothing_from_the_package():
    # fairseq must be the first to import it, or --user-dir registers nothing
    names = imports(ROOT / "hyptrans_startup.py")
    assert not [name for name in names if name.partition(".")[0] == "hyptrans"]


def test_only_the_fairseq_plugin_imports_the_startup_hook():
    paths = [path for part in ("hyptrans", "probing") for path in (ROOT / part).rglob("*.py")]
    found = [path for path in paths if "hyptrans_startup" in imports(path)]
    assert found == [ROOT / "hyptrans" / "fairseq" / "__init__.py"]


def test_kernels_have_no_circular_imports():
    """Imports inside functions are counted too."""
    root = ROOT / "hyptrans" / "kernels"
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in root.rglob("*.py")
    }
    # `from package import module` is an import of the module
    left = {name: {*imports(path)} & {*names} for name, path in names.items()}
    left = {
        name: {one for one in found if not any(other.startswith(f"{one}.") for other in found)}
        for name, found in left.items()
    }
    while free := {name for name, found in left.items() if not found & {*left} - {name}}:
        assert not any(name in left[name] for name in free)
        left = {name: found for name, found in left.items() if name not in free}
    assert left == {}
