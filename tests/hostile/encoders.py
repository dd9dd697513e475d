"""Encoders of Hugging Face's format whose files are not what ``save_pretrained`` writes."""

import json
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.hostile.running import RAN, Hostile, ordinary, payload

HUGE = [10**7, 10**9, 10**15]


def read(folder: Path, *, fresh: bool) -> None:
    """As ``python -m probing extract --hf``, with the parameters or with ``--random``."""
    from probing.states.huggingface import from_hugging_face

    from_hugging_face(str(folder), random=fresh).tokenize("a" * 60)


def sized(draw: random.Random, config: dict[str, Any]) -> None:
    """More layers, words or numbers than there are parameters for."""
    name = draw.choice(["num_hidden_layers", "vocab_size", "intermediate_size", "hidden_size"])
    most = {"num_hidden_layers": [2_000, 20_000], "hidden_size": [2**16, 2**20]}
    config[name] = draw.choice(most.get(name, HUGE))


def positioned(draw: random.Random, config: dict[str, Any]) -> None:
    config["max_position_embeddings"] = draw.choice(HUGE)


def coded(draw: random.Random, config: dict[str, Any]) -> None:
    """Classes of a file beside it."""
    names = {"AutoConfig": "evil.C", "AutoModel": "evil.M", "AutoTokenizer": ["evil.T", None]}
    config |= {"auto_map": names, "model_type": draw.choice(["evil", "bert"])}


def fetched(draw: random.Random, config: dict[str, Any]) -> None:
    """A kernel of somebody's on the hub."""
    where = draw.choice([config, config.setdefault("text_config", {})])
    where[draw.choice(["attn_implementation", "_attn_implementation"])] = "evil/kernel"


CHANGES = [sized, sized, positioned, coded, fetched]


def grown(draw: random.Random, tokenizer: dict[str, Any]) -> None:
    """A letter that stands for a book, at once or in steps."""
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "b" * 3_000_000}
    small = {**step, "content": "a" * 2_000}
    tokenizer["normalizer"] = draw.choice(
        [step, {"type": "Sequence", "normalizers": [small, small]}]
    )


def endless(draw: random.Random, tokenizer: dict[str, Any]) -> None:
    """A pattern that tries more ways than there is time for."""
    split = {"type": "Split", "pattern": {"Regex": "(a+)+c"}, "behavior": "Isolated"}
    tokenizer["pre_tokenizer"] = {**split, "invert": draw.random() < 0.5}


def encoders(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """One thing is wrong in each folder."""
    import torch

    from tests.probing.helpers import huggingface

    whole = folder / "whole"
    huggingface.save(whole)
    read(whole, fresh=True)  # what is imported here, no fork imports
    tries = [ordinary(partial(read, whole, fresh=fresh)) for fresh in (False, True)]
    for i in range(count):
        place = shutil.copytree(whole, folder / f"model{i}")
        name, fresh = "a pickle in place of the parameters", i % 2 == 1
        if i % 8 < len(CHANGES):
            name = changed(draw, place / "config.json", CHANGES[i % 8])
            (place / "evil.py").write_text(payload(draw) + "\nC = M = T = None\n")
        elif i % 8 < 7:
            name = changed(draw, place / "tokenizer.json", [grown, endless][i % 2])
        else:
            fresh = False
            (place / "model.safetensors").unlink()
            torch.save({"a": Pickled()}, place / "pytorch_model.bin")
        tries.append(Hostile(name, partial(read, place, fresh=fresh)))
    return tries


def changed(draw: random.Random, file: Path, change: Callable) -> str:
    found = json.loads(file.read_text(encoding="utf-8"))
    change(draw, found)
    file.write_text(json.dumps(found), encoding="utf-8")
    return change.__name__


class Pickled:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple:
        return open, (RAN, "w")
