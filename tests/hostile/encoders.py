"""Encoders of Hugging Face's format whose files are not what ``save_pretrained`` writes."""

import json
import random
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from tests.hostile.running import RAN, Hostile, ordinary, payload

HUGE = [10**7, 10**9, 10**15]


def read(folder: Path, *, fresh: bool) -> None:
    """As ``python -m probing extract --hf``, with the parameters or with ``--random``."""
    from probing.states.huggingface import from_hugging_face

    from_hugging_face(str(folder), random=fresh)


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


CHANGES = [sized, sized, positioned, coded]


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
        change, config = CHANGES[i % 5 - 1], json.loads((place / "config.json").read_text())
        if i % 5:
            change(draw, config)
            (place / "config.json").write_text(json.dumps(config))
            (place / "evil.py").write_text(payload(draw) + "\nC = M = T = None\n")
        else:
            # a pickle in place of the parameters
            (place / "model.safetensors").unlink()
            torch.save({"a": Pickled()}, place / "pytorch_model.bin")
        tries.append(Hostile(change.__name__, partial(read, place, fresh=i % 2 == 1)))
    return tries


class Pickled:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple:
        return open, (RAN, "w")
