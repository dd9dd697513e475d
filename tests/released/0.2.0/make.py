"""Make the models of a release and record what it computes with them.

Run by the interpreter of an environment with that release: ``python make.py``. It writes beside
itself ``models.tar.xz``, with a data folder, a checkpoint of each architecture as ``fairseq-train``
wrote it and the model folder that ``hyptrans export`` made of it, and ``expected.json``, with
translations, log-probabilities and the losses of 30 updates by Adam.
"""

import json
import lzma
import os
import random
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import torch
from torch.nn import functional as F

import hyptrans

HERE = Path(__file__).parent
PROGRAMS = Path(sys.executable).parent
MODELS = {
    "hybonet": "--arch hybonet_tiny --curvature 0.8",
    "hybonet_centroid": "--arch hybonet_tiny --hybonet-residual centroid --share-all-embeddings",
    "hybonet_points": "--arch hybonet_tiny --embedding-storage manifold",
    "hybonet_plus": "--arch hybonet_plus_tiny --share-decoder-input-output-embed",
    "han": "--arch han_tiny",
    "hypformer": "--arch hypformer_tiny --hypformer-learn-curvature",
    "hvt": "--arch hvt_tiny",
    "sphere": "--arch sphere_tiny",
    "postnorm": "--arch euclidean_tiny --layernorm-embedding --activation-fn gelu",
    "prenorm": "--arch euclidean_prenorm_tiny --share-all-embeddings",
    "transformer": "--arch transformer_tiny",
}
SIZES = " ".join(
    f"--{side}-embed-dim 8 --{side}-ffn-embed-dim 12 --{side}-layers {layers} "
    f"--{side}-attention-heads 2"
    for side, layers in (("encoder", 2), ("decoder", 1))
)
POINTS = "hybonet_points"
"""Its embeddings are points, which an ordinary Adam moves off their space."""


def main() -> None:
    """Write both files."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        make_data(place)
        for name, flags in MODELS.items():
            make_model(place, name, flags)
        pack(place)
        expected = {name: record(place, name) for name in MODELS}
    text = json.dumps({"release": hyptrans.__version__, "models": expected}, indent=1)
    (HERE / "expected.json").write_text(text + "\n", encoding="utf-8")


def make_data(place: Path) -> None:
    """Sentences of a few words, and their translation, which is the other way round."""
    draw = random.Random(7)
    words = ["ba", "be", "bi", "bo", "da", "de", "di", "do", "ga", "ge"]
    for split, count in (("train", 200), ("valid", 20)):
        rows = [draw.choices(words, k=draw.randint(1, 7)) for _ in range(count)]
        for language, made in (("xx", rows), ("yy", [row[::-1] for row in rows])):
            lines = "".join(" ".join(row) + "\n" for row in made)
            (place / f"{split}.{language}").write_text(lines)
    run(
        place,
        "hyptrans prepare text --train train.xx train.yy --valid valid.xx valid.yy --vocab-size 8 "
        "--bpe subword-nmt --raw-text --joined-dictionary --workers 1 --out data",
    )


def make_model(place: Path, name: str, flags: str) -> None:
    """Train for a moment, so that sentences end and hypotheses differ, and export."""
    optimizer = "riemannian_adam" if name == POINTS else "adam"
    run(
        place,
        f"fairseq-train data/data-bin --user-dir hyptrans {flags} {SIZES} --dropout 0 "
        "--attention-dropout 0 --max-source-positions 32 --max-target-positions 32 --cpu "
        f"--optimizer {optimizer} --lr 0.02 --max-tokens 200 --max-update 60 --seed 3 "
        f"--criterion label_smoothed_cross_entropy --disable-validation --save-dir {name} "
        "--no-epoch-checkpoints --no-save-optimizer-state --num-workers 0",
    )
    (place / name / "checkpoint_last.pt").rename(place / f"{name}.pt")
    run(place, f"hyptrans export {name}.pt --data data --precision full --out folders/{name}")


def run(place: Path, command: str) -> None:
    """Run a command of the release."""
    first, *others = command.split()
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([PROGRAMS / first, *others], cwd=place, env=variables, check=True)


def pack(place: Path) -> None:
    """Put what a test needs into one archive."""
    with (
        lzma.open(HERE / "models.tar.xz", "wb", preset=9) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for path in sorted([*place.glob("*.pt"), *place.glob("folders/*/*"), *data_files(place)]):
            archive.add(path, path.relative_to(place), filter=without_owner)


def data_files(place: Path) -> list[Path]:
    """Return the files of the data folder that loading a checkpoint needs."""
    binary = place / "data" / "data-bin"
    return [
        *(place / "data" / name for name in ("manifest.json", "bpe.codes")),
        *(path for kind in ("dict.*.txt", "valid.*") for path in binary.glob(kind)),
    ]


def without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return an archive entry without owner and time."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def record(place: Path, name: str) -> dict[str, object]:
    """Record what the release computes with a model."""
    sources = (place / "valid.xx").read_text().splitlines()[:8]
    targets = (place / "valid.yy").read_text().splitlines()[:8]
    model = hyptrans.load(place / f"{name}.pt", data=place / "data")
    found = [one[0] for one in model.n_best(sources, 1, beam=3)]
    return {
        "sources": sources,
        "targets": targets,
        "translations": [one.text for one in found],
        "scores": [one.score for one in found],
        "log_probabilities": model.score(sources, targets),
        "losses": None if name == POINTS else losses(place, name, sources, targets),
    }


def losses(place: Path, name: str, sources: list[str], targets: list[str]) -> list[float]:
    """Losses of 30 updates by Adam in float64; a row has padding on the right."""
    loaded = hyptrans.load(place / f"{name}.pt", data=place / "data", dtype="float64")
    model = loaded.models[0].train().requires_grad_()
    words = model.decoder.dictionary

    def rows(texts: list[str]) -> list[list[int]]:
        return [[words.index(word) for word in text.split()] for text in texts]

    def padded(rows: list[list[int]]) -> torch.Tensor:
        tensors = [torch.tensor(row) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(tensors, True, words.pad())

    source = padded([[*row, words.eos()] for row in rows(sources)])
    previous = padded([[words.eos(), *row] for row in rows(targets)])
    wanted = padded([[*row, words.eos()] for row in rows(targets)])
    adam, found = torch.optim.Adam(model.parameters(), lr=5e-3), []
    for _ in range(30):
        logits = model(source, previous)
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=words.pad())
        adam.zero_grad()
        loss.backward()
        adam.step()
        found.append(loss.item())
    return found


if __name__ == "__main__":
    main()
