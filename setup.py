"""Package hyptrans, its start-up hook, and the file that makes the interpreter load the hook."""

import re
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
HOOK = "hyptrans.pth"

DATA = ["sacremoses>=0.1", "subword-nmt>=0.3.8", "datasets>=4", "regex"]
PLOT = ["matplotlib>=3.10"]
PROBING = [
    "stanza>=1.6",
    "conllu>=4.5",
    "scipy>=1.10",
    "jinja2>=3",
    "markupsafe>=2",
]
HUB = ["huggingface_hub>=0.34"]
# what --user-dir needs, and whoever reads checkpoints; it has no Python 3.14
FAIRSEQ = ["fairseq==0.12.2"]
TENSORBOARD = ["tensorboard>=2.10"]
WANDB = ["wandb>=0.17"]
# encoders in its format, for probes, and our models in that library, which trains by accelerate
TRANSFORMERS = ["transformers>=5.24,<6", "accelerate>=1.10"]


class BuildWithHook(build_py):
    """Put the hook's file beside the packages, where Python reads it at every start."""

    def run(self) -> None:
        super().run()
        # an editable install has no build folder: what lies in install_lib goes into its wheel
        editable = getattr(self, "editable_mode", False)
        folder = self.get_finalized_command("install").install_lib if editable else self.build_lib
        self.mkpath(folder)
        self.copy_file(str(ROOT / HOOK), str(Path(folder) / HOOK))
        if editable:
            # the recipes, which no wheel has, are found in the repository from any folder
            path = Path(folder) / "hyptrans_repository.pth"
            path.write_text(f"{ROOT.resolve()}\n", encoding="utf-8")


def found(pattern: str, path: str) -> str:
    """Return what the pattern's group matches in a file of the repository."""
    match = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise SystemExit(f"{path} has no line that matches {pattern}; it is needed for the build")
    return match[1]


setup(
    name="hyptrans",
    version=found(r'^__version__ = "(.+)"', "hyptrans/__init__.py"),
    description="Hyperbolic Transformers for fairseq",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.10,<3.15",
    packages=find_packages(include=["hyptrans", "hyptrans.*", "hyptrans_startup*", "probing*"]),
    package_data={
        "hyptrans": ["py.typed", "pretrained/*/*"],
        "probing.report": ["assets/*"],
    },
    install_requires=[
        "torch>=2.6",
        "geoopt>=0.5.1",
        # older versions read out of bounds where a model is made to that end
        "sentencepiece>=0.2.2",
        "sacrebleu>=2.3",
        "numpy>=1.23",
        "numba>=0.60",
        "tqdm>=4.60",
        # older versions copy a tensor to write it, which states of words may be too large for
        "safetensors>=0.8",
    ],
    entry_points={"console_scripts": ["hyptrans=hyptrans.commands.cli:main"]},
    extras_require={
        "fairseq": FAIRSEQ,
        "data": DATA,
        "plot": PLOT,
        "probing": PROBING,
        "hub": HUB,
        "tensorboard": TENSORBOARD,
        "wandb": WANDB,
        "transformers": TRANSFORMERS,
        "test": [
            "pytest>=8",
            "pytest-xdist>=3.5",
            "packaging>=22",
            "networkx>=3.0",
            "mpmath>=1.3",
            # fuzzes the reader of checkpoints in a slow test
            'atheris>=2.3; platform_system == "Linux"',
            # drives the Chromium that is installed; brings none
            "playwright>=1.49",
            # its interpreter runs the CUDA kernels in the tests; torch for CUDA brings its own
            'triton>=3; platform_system == "Linux"',
            *FAIRSEQ,
            *DATA,
            *PLOT,
            *PROBING,
            *HUB,
            *TENSORBOARD,
            *WANDB,
            *TRANSFORMERS,
        ],
        "dev": [
            "ruff>=0.6",
            "mypy>=1.11",
            "types-tqdm",
            # make docs
            "mkdocs-material>=9.5",
            "mkdocstrings[python]>=0.26",
        ],
    },
    cmdclass={"build_py": BuildWithHook},
)
