"""Model folders, as a stranger sends them or the hub has them: one thing is wrong in each."""

import argparse
import contextlib
import io
import json
import random
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from tests.hostile.running import Hostile, ordinary, payload

LARGE = [10**7, 10**12, 2**63, 10**30, -1, 0, -(10**9)]
ODD = ["x", "16; id", "${env:HOME}", [1], {}, None, True, 0.5, float("nan"), float("inf")]
PATHS = ["../../x", "/etc/passwd", "x/../../y", "a b", "", "x\0y"]


def translate(folder: Path, text: str = "the merchant rests.") -> None:
    """As ``hyptrans translate``."""
    import hyptrans

    hyptrans.load(folder).translate([text], beam=2)


def tell(folder: Path) -> None:
    """As ``hyptrans info``: nothing that a terminal would act on."""
    from hyptrans.commands import info

    parser, out = argparse.ArgumentParser(), io.StringIO()
    info.add_arguments(parser)
    with contextlib.redirect_stdout(out):
        info.main(parser.parse_args([str(folder)]))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", out.getvalue())


def options(draw: random.Random, config: dict) -> None:
    name = draw.choice([*config["options"], "adaptive_softmax_cutoff", "encoder_embed_path", "x"])
    config["options"][name] = draw.choice([*LARGE, *ODD, *PATHS, payload(draw)])


def architecture(draw: random.Random, config: dict) -> None:
    others = ["lstm", "fconv", "transformer", "euclidean_tiny", "hvt_tiny", "sphere_tiny"]
    config["architecture"] = draw.choice([*others, *ODD, *PATHS])
    if config["architecture"] in ("transformer", "euclidean_tiny"):
        names = ["xformers_att_config", "adaptive_softmax_cutoff"]
        config["options"] = {draw.choice(names): payload(draw)}


def languages(draw: random.Random, config: dict) -> None:
    path = draw.choice(PATHS)
    config["languages"] = draw.choice([["en", path], [path, path], ["en"], "en", {"en": 1}, None])


def rules(draw: random.Random, config: dict) -> None:
    text = config["text"]
    changes = [
        ("subwords", draw.choice(["subword-nmt", *ODD, *PATHS])),
        ("raw_text", draw.choice(["x", 1, None])),
        ("steps", draw.choice([[["__class__"], []], [[]], [["tokenize"] * 10**5] * 2, "xx", 5])),
        ("steps", [[[[]]], []]),
    ]
    name, value = draw.choice(changes)
    text[name] = value


def facts(draw: random.Random, config: dict) -> None:
    words = f"a\x1b]0;{draw.random()}\x07\x1b[31m\u202eb"
    scores = [[1], "xy", {"a": 1}, [{"name": words, "value": words}], [{"name": [], "value": {}}]]
    config["facts"] = draw.choice(
        [[], words, {"license": words}, {"updates": {words: words}}, {"license": [[words]]}]
        + [{"scores": value} for value in scores]
    )


CHANGES: dict[str, Callable[[random.Random, dict], None]] = {
    "options": options,
    "architecture": architecture,
    "languages": languages,
    "text": rules,
    "facts": facts,
}


def of_json(draw: random.Random, folder: Path) -> None:
    deep = draw.choice(["[", '{"a":']) * 100_000
    digits = '{"format": ' + "9" * 10**6 + "}"
    texts = [deep, digits, "", "null", "[]", '{"library_name": "hyptrans"}', " " * (80 << 20)]
    (folder / "config.json").write_text(draw.choice(texts))


def of_weights(draw: random.Random, folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = folder / "model.safetensors"
    held, kind = load_file(path), draw.choice(["type", "shape", "more", "gone", "noise", "cut"])
    name = draw.choice(list(held))
    if kind == "type":
        held[name] = held[name].astype(draw.choice([np.int8, np.float64, np.bool_, np.uint64]))
    elif kind == "shape":
        held[name] = draw.choice([held[name].reshape(-1), held[name][None], np.zeros(0)])
    elif kind == "more":
        held[draw.choice(["encoder.layers.10000000.x", "x" * 10**5, ""])] = np.zeros(1, np.float32)
    elif kind == "gone":
        del held[name]
    save_file(held, path)
    if kind in ("noise", "cut"):
        garbled(draw, path, cut=kind == "cut")


def of_dictionary(draw: random.Random, folder: Path) -> None:
    path = folder / "dict.en.txt"
    lines = path.read_text().splitlines()
    place = draw.randrange(len(lines))
    lines[place] = draw.choice(
        ["x", "x y", "x 1.5", "x -1", f"x {10**400}", "", "<pad> 1", lines[place - 1], "\0 1"]
    )
    lines *= draw.choice([1, 1, 1, 300])
    path.write_text("\n".join(lines) + "\n")


def of_subwords(draw: random.Random, folder: Path) -> None:
    path = folder / "sentencepiece.model"
    if draw.random() < 0.3:
        path.write_bytes(draw.choice([b"", b"\xff" * 999, draw.randbytes(9999)]))
    else:
        garbled(draw, path, cut=draw.random() < 0.3)


def garbled(draw: random.Random, path: Path, *, cut: bool) -> None:
    data = bytearray(path.read_bytes())
    if cut:
        del data[draw.randrange(len(data)) :]
    for _ in range(0 if cut else draw.randint(1, 9)):
        data[draw.randrange(draw.choice([min(4000, len(data)), len(data)]))] = draw.randrange(256)
    path.write_bytes(data)


FILES = {"json": of_json, "weights": of_weights, "words": of_dictionary, "subwords": of_subwords}


def folders(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """The model that comes with the package, changed."""
    from hyptrans.inference.load import SHIPPED

    whole = SHIPPED / "tatoeba-en-de"
    tell(whole)  # what is imported here, no fork imports
    tries = [ordinary(partial(translate, whole)), ordinary(partial(tell, whole))]
    for i in range(count):
        kind = draw.choice([*CHANGES, *FILES])
        place = shutil.copytree(whole, folder / f"model{i}")
        if kind in FILES:
            FILES[kind](draw, place)
        else:
            config = json.loads((place / "config.json").read_text())
            CHANGES[kind](draw, config)
            (place / "config.json").write_text(json.dumps(config))
        use = tell if kind == "facts" else draw.choice([translate, translate, tell])
        tries.append(Hostile(kind, partial(use, place)))
    return tries


def sizes(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """The same, with options that ask for more than its parameters."""
    from hyptrans.inference.load import SHIPPED

    whole = SHIPPED / "tatoeba-en-de"
    tries = [ordinary(partial(translate, whole))]
    wide = [f"{side}_{size}" for side in ("encoder", "decoder") for size in ("embed_dim", "layers")]
    wide += ["encoder_ffn_embed_dim", "decoder_ffn_embed_dim"]
    for i in range(count):
        place = folder / f"model{i}"
        place.mkdir()
        for file in whole.iterdir():
            (place / file.name).symlink_to(file)
        config = json.loads((whole / "config.json").read_text())
        if i % 2:
            config["options"][draw.choice(wide)] = 1 << draw.randint(9, 20)
        else:
            side = draw.choice(["source", "target"])
            config["options"][f"max_{side}_positions"] = 1 << draw.randint(21, 23)
        (place / "config.json").unlink()
        (place / "config.json").write_text(json.dumps(config))
        tries.append(Hostile("sizes", partial(translate, place)))
    return tries
