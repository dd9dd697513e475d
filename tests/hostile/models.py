"""Small files of models that are large by their options, and parameters that are none."""

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from tests.hostile.checkpoints import data_folder, extract, stored, with_option, written
from tests.hostile.running import Hostile, ordinary

SIDES = ("encoder", "decoder")
TABLE = "encoder.embed_tokens.weight"
PLAIN = {"none": None}
"""Subwords of the folder of these checkpoints."""
NARROW = [f"--{side}-{size}" for side in SIDES for size in ("embed-dim=8", "ffn-embed-dim=16")]
NARROW += [f"--max-{side}-positions=64" for side in ("source", "target")]
FIXED = [f"--no-{side}-learned-pos" for side in SIDES]
MODELS = {
    "euclidean_tiny": NARROW,
    "han_tiny": [*NARROW, *FIXED],
    "hybonet_tiny": [*NARROW, "--embedding-storage=manifold"],
    "hvt_tiny": [*NARROW, *FIXED, "--embedding-storage=manifold"],
    "transformer_tiny": NARROW,
}

UP = ["../../", ".././../", "./../..//"]
"""From a folder in a folder to what it is in."""

Change = Callable[[random.Random, dict], dict]


def load(path: Path, data: Path) -> None:
    """As ``hyptrans translate`` does of a checkpoint."""
    import hyptrans

    hyptrans.load(path, data=data, subword_models=PLAIN)


def load_folder(folder: Path) -> None:
    """As ``hyptrans translate`` does of a model folder."""
    import hyptrans

    hyptrans.load(folder)


def average(path: Path) -> None:
    """As ``hyptrans average`` does."""
    from hyptrans.fairseq.average import average as mean

    mean([path, path])


def choose(folder: Path) -> None:
    """As ``hyptrans average --best`` does."""
    from hyptrans.fairseq.average import choose as chosen

    chosen(folder, best=1)


def export(path: Path, data: Path, out: Path) -> None:
    """As ``hyptrans export`` does: in one folder, and nowhere else."""
    from hyptrans.fairseq import checkpoint
    from hyptrans.inference.sharing import folder

    top = data.parent
    before = {entry for entry in top.rglob("*") if out not in (entry, *entry.parents)}
    try:
        contents = checkpoint.read(path, data, subword_models=PLAIN)
        folder.write(contents, out, card="")
    finally:
        after = {entry for entry in top.rglob("*") if out not in (entry, *entry.parents)}
        assert after == before


def wide(draw: random.Random, state: dict) -> dict:
    """Sizes that no stored parameter needs to have."""
    names = [*["decoder_output_dim"] * 3, "encoder_ffn_embed_dim"]
    names += ["decoder_ffn_embed_dim", "decoder_embed_dim", "encoder_embed_dim"]
    return with_option(state, "model", draw.choice(names), 1 << draw.randint(15, 20))


def long(draw: random.Random, state: dict) -> dict:
    """Positions of which no vector is stored."""
    for side in draw.choice([("source",), ("target",), ("source", "target")]):
        most = 1 << draw.randint(21, 23)
        state = with_option(state, "model", f"max_{side}_positions", most)
    return state


def odd(draw: random.Random, state: dict) -> dict:
    """Parameters that are none, or are not those of a model."""
    models = [{"a": torch.ones(3)}, {"a": 3}, {1: torch.ones(3)}, {TABLE: torch.ones(16, 8)}]
    models += [{f"{side}.embed_tokens.weight": torch.tensor(1.0) for side in SIDES}]
    return {**state, "model": draw.choice(models)}


def spread(draw: random.Random, state: dict) -> dict:
    """A few numbers with the shape of many, and one storage under many names."""
    one, table = torch.ones(1), torch.ones(1 << 20)
    changes = [
        {TABLE: one.expand(1 << draw.randint(27, 50), 8)},
        {TABLE: torch.ones(0).expand(1 << 50, 0)},
        {"encoder.layers.0.x": one.expand(1 << draw.randint(27, 50))},
        {f"encoder.layers.0.x{i}": table for i in range(500)},
    ]
    return {**state, "model": {**state["model"], **draw.choice(changes)}}


def shaped(draw: random.Random, state: dict) -> dict:
    """A parameter of another shape."""
    name = draw.choice([name for name in state["model"] if "embed_tokens" in name])
    tensor = state["model"][name]
    other = draw.choice([tensor[:, :1], tensor[:0], tensor.view(-1), tensor[0, 0], tensor.int()])
    return {**state, "model": {**state["model"], name: other.clone()}}


def history(draw: random.Random, state: dict) -> dict:
    """What is said of the training, of another kind."""
    changes = [
        {"optimizer_history": [None]},
        {"optimizer_history": [{"num_updates": "many"}]},
        {"extra_state": {"val_loss": draw.choice(["x", [1], {}])}},
        {"cfg": {"model": state["cfg"]["model"]}, "extra_state": {"val_loss": 1.0}},
        {"cfg": {**state["cfg"], "model": draw.choice([None, 1, [], {}])}},
    ]
    return {**state, **draw.choice(changes)}


CHANGES: list[Change] = [wide, long, odd, spread, shaped, history]


def models(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Checkpoints that are loaded by this package itself, or averaged."""
    from hyptrans.fairseq.average import average as mean  # noqa: F401 - no fork imports it

    data = data_folder(folder)
    states = {arch: stored(arch, folder, *flags) for arch, flags in MODELS.items()}
    tries = []
    for arch, state in states.items():
        path = written(state, folder / f"{arch}.pt")
        tries += [ordinary(partial(load, path, data)), ordinary(partial(average, path))]
    for i in range(count):
        change, arch = CHANGES[i % len(CHANGES)], draw.choice(list(states))
        place = folder / f"run{i}"
        place.mkdir()
        path = written(change(draw, states[arch]), place / "checkpoint1.pt")
        uses = [partial(load, path, data), partial(average, path), partial(extract, path, data)]
        uses += [partial(choose, place)] if change is history else []
        tries.append(Hostile(f"{arch} {change.__name__}", draw.choice(uses)))
    return tries


def exported(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Languages that are paths."""
    state = stored("euclidean_tiny", folder, *NARROW)
    data = data_folder(folder)
    words = (data / "dict.en.txt").read_text()
    (data / "dict.x").mkdir()
    (folder / "deeper").mkdir()
    whole = written(state, folder / "whole.pt")
    tries = [ordinary(partial(export, whole, data, folder / "out"))]
    for i in range(count):
        language = f"x/{draw.choice(UP)}escaped{i}"
        (data / f"dict.{language}.txt").write_text(words)
        for name in draw.choice(
            [("source_lang",), ("target_lang",), ("source_lang", "target_lang")]
        ):
            changed = with_option(state, "task", name, language)
        path = written(changed, folder / f"exported{i}.pt")
        out = folder / "deeper" / f"out{i}"
        tries.append(Hostile(language, partial(export, path, data, out)))
    return tries


def of_folders(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Model folders whose options ask for more than their parameters."""
    data = data_folder(folder)
    places = {}
    for arch, flags in MODELS.items():
        path = written(stored(arch, folder, *flags), folder / f"{arch}.pt")
        places[arch] = folder / arch
        export(path, data, places[arch])
    tries = [ordinary(partial(load_folder, place)) for place in places.values()]
    for i in range(count):
        arch, change = draw.choice(list(places)), draw.choice([wide, long])
        config = json.loads((places[arch] / "config.json").read_text())
        # a change speaks of a checkpoint
        options = change(draw, {"cfg": {"model": config["options"]}})["cfg"]["model"]
        place = folder / f"model{i}"
        place.mkdir()
        for file in places[arch].iterdir():
            (place / file.name).symlink_to(file)
        (place / "config.json").unlink()
        (place / "config.json").write_text(json.dumps({**config, "options": options}))
        tries.append(Hostile(f"{arch} {change.__name__}", partial(load_folder, place)))
    return tries
