"""Files of states and of probes whose metadata or tensors are not what probing writes."""

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from tests.hostile.running import Hostile, ordinary


def contents(lengths: list[int]) -> dict:
    from hyptrans.geometry.space import Space
    from probing.states.file import Contents

    spaces, kept = [Space("lorentz")] * 2, list(range(len(lengths)))
    hashes = {"identity": "0" * 64, "trees_sha256": "1" * 64}
    named = {"architecture": "hybonet_tiny", "encoder": "c.pt", "trees": "t.conllu", **hashes}
    counts = {"seed": 1, "unknown": 0, "split": 0}
    return asdict(
        Contents(
            **named, **counts, random=False, spaces=spaces, kept=kept, lengths=lengths, left_out=[]
        )
    )


def read_states(path: Path) -> None:
    """As a training of probes does: all sentences, at their places in the trees."""
    from probing.states.file import States

    states = States.open(path)
    assert sorted(set(states.kept)) == states.kept
    for i in range(len(states)):
        states.batch([i])


ODD = [-1, 10**12, 2**63, 10**400, float("inf"), "x", None, 1.5, [], {}, True]


def named(use: Callable[[Path], object], path: Path) -> None:
    """What is told of a file says which one it is."""
    from hyptrans_startup.errors import UserError

    try:
        use(path)
    except UserError as error:
        if str(path) not in str(error):
            raise ValueError(f"the file is not named: {error}") from error
        raise


def written(path: Path) -> Path:
    """The states of two sentences."""
    from safetensors import numpy as safetensors

    from probing.states.file import FORMAT

    metadata = {"format": FORMAT, "contents": json.dumps(contents([3, 1]))}
    safetensors.save_file({"states": np.zeros([4, 2, 4], np.float32)}, path, metadata)
    return path


def states(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """One thing is wrong in each file."""
    from safetensors import numpy as safetensors

    from probing.states.file import FORMAT

    tries = [ordinary(partial(named, read_states, written(folder / "whole.safetensors")))]
    for i in range(count):
        about = contents([draw.randint(1, 5) for _ in range(draw.randint(2, 6))])
        shape = [sum(about["lengths"]), 2, 4]
        kind = draw.choice(
            [*list(about), "dtype", "shape", "deep", "format", "header", "missing", "c"]
        )
        dtype, text = np.float32, None
        if kind == "dtype":
            dtype = draw.choice([np.float64, np.int8, np.float16, np.bool_])
        elif kind == "shape":
            shape[draw.randrange(3)] = draw.choice([0, 1, 40])
            shape = shape if draw.random() < 0.7 else shape[:2]
        elif kind == "deep":
            text = "[" * 100_000 + "]" * 100_000
        elif kind == "c":
            about["spaces"] = [{"kind": "lorentz", "c": draw.choice(ODD)}] * 2
        elif kind == "missing":
            del about[draw.choice(list(about))]
        elif kind in about:
            value = about[kind]
            if isinstance(value, list) and draw.random() < 0.2:
                about[kind] = (value or [{}]) * 10**5
            elif isinstance(value, list) and value and draw.random() < 0.7:
                value[draw.randrange(len(value))] = draw.choice(ODD)
            else:
                about[kind] = draw.choice([odd for odd in ODD if type(odd) is not type(value)])
        path = folder / f"states{i}.safetensors"
        version = "hyptrans states 9" if kind == "format" else FORMAT
        metadata = {"format": version, "contents": text or json.dumps(about)}
        safetensors.save_file({"states": np.zeros(shape, dtype)}, path, metadata)
        if kind == "header":
            data = bytearray(path.read_bytes())
            for _ in range(draw.randint(1, 9)):
                data[draw.randrange(200)] = draw.randrange(256)
            path.write_bytes(data)
        tries.append(Hostile(kind, partial(named, read_states, path)))
    return tries


def written_probes(path: Path) -> Path:
    """Probes of two layers, untrained."""
    from hyptrans.geometry.space import Space
    from probing.probes.file import save_probes
    from probing.probes.probe import make_probe
    from probing.probes.training import TASKS, Course, Trained
    from probing.settings import Settings

    made = [make_probe("lorentz", 6, 4, [Space("lorentz")] * 2) for _ in TASKS]
    courses = {task: [Course(), Course()] for task in TASKS}
    save_probes(path, Trained(Settings(rank=4), "", *made, courses))
    return path


def probes(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """One thing is wrong in each file."""
    from safetensors import safe_open
    from safetensors import torch as safetensors

    from probing.probes.file import load_probes

    whole = written_probes(folder / "probes")
    with safe_open(whole, "pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    tries = [ordinary(partial(named, load_probes, whole))]
    for i in range(count):
        about, held = json.loads(metadata["about"]), dict(tensors)
        kind = draw.choice(["width", "rank", "spaces", "settings", "courses", "dtype", "gone"])
        if kind == "width":
            about["width"] = draw.choice([odd for odd in ODD if odd is not True])
        elif kind == "rank":
            about["settings"]["rank"] = draw.choice(ODD)
        elif kind == "spaces":
            about["spaces"] = draw.choice([about["spaces"] * 10**5, [], [{}], ODD, {"a": 1}])
        elif kind == "settings":
            name = draw.choice([*about["settings"], "brand_new"])
            about["settings"][name] = draw.choice([[], {}, None, "x" * 99, -(10**400), *ODD])
        elif kind == "courses":
            many = {task: courses * 10**5 for task, courses in about["courses"].items()}
            few = {"distance": [1], "depth": [[]]}
            about["courses"] = draw.choice([{}, [], few, many, None])
        elif kind == "dtype":
            name = draw.choice(list(held))
            held[name] = held[name].to(draw.choice([torch.float64, torch.int8, torch.complex64]))
        else:
            del held[draw.choice(list(held))]
        path = folder / f"probes{i}.safetensors"
        safetensors.save_file(held, path, {**metadata, "about": json.dumps(about)})
        tries.append(Hostile(kind, partial(named, load_probes, path)))
    return tries


def trees(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Files in CoNLL-U that are small and hold much, or heads that are no tree."""
    whole = folder / "whole"
    whole.write_text(conllu([2, 0, 2]))
    read_trees(whole)  # what is imported here, no fork imports
    tries = [ordinary(partial(named, read_trees, whole))]
    for i in range(count):
        kind = list(TREES)[i % len(TREES)]
        path = folder / f"trees{i}"
        path.write_bytes(TREES[kind](draw))
        tries.append(Hostile(kind, partial(named, read_trees, path)))
    return tries


def read_trees(path: Path) -> None:
    """As an extraction does, which names the sentences that it leaves out on the terminal."""
    from probing.commands.extract import summary
    from probing.states.file import Contents, LeftOut, States
    from probing.text.trees import read_conllu

    left = [LeftOut(i, tree.id, "it is long") for i, tree in enumerate(read_conllu(path))]
    told = Contents(**contents([]) | {"left_out": left})
    values = SimpleNamespace(get_shape=lambda: [0, 2, 4])
    assert not {*"\x1b\x07\u202e"} & {*summary(States(path, told, values))}


def conllu(heads: list[int], sent_id: str = "s") -> str:
    rows = [f"{i}\tw\t_\tX\t_\t_\t{head}\tx\t_\t_" for i, head in enumerate(heads, 1)]
    return "\n".join([f"# sent_id = {sent_id}", *rows]) + "\n\n"


_COMMENT = b"# " + b"x" * 1000 + b"\n"
TREES: dict[str, Callable[[random.Random], bytes]] = {
    "a line without end": lambda draw: gzip.compress(
        b"# " + b"x" * draw.randint(5 << 20, 99 << 20), 1
    ),
    "lines without end": lambda draw: gzip.compress(_COMMENT * draw.randint(70_000, 99_000), 1),
    "a chain": lambda draw: conllu([*range(2, draw.randint(9_000, 12_000)), 0]).encode(),
    "a longer chain": lambda draw: gzip.compress(
        conllu([*range(2, draw.randint(900_000, 1_000_000)), 0]).encode(), 1
    ),
    "a star": lambda draw: gzip.compress(
        conllu([0, *[1] * draw.randint(300_000, 400_000)]).encode()
    ),
    "a long word": lambda draw: gzip.compress(
        conllu([0, 1]).replace("\tw", f"\t{'w' * draw.randint(1_000_000, 4_000_000)}").encode(), 1
    ),
    "many columns": lambda draw: gzip.compress(
        conllu([0, 1]).replace("\tw", "\tw" * draw.randint(1_000_000, 2_000_000)).encode(), 1
    ),
    "a cycle": lambda draw: conllu([0, *range(3, draw.randint(9_000, 12_000)), 2]).encode(),
    "a name for the terminal": lambda draw: conllu(
        [0], draw.choice(["\x1b[31mx", "\x1b]0;x\x07", "x\u202ey"])
    ).encode(),
    "numbers of words": lambda draw: (
        conllu([0, 1]).replace("2\tw", f"{draw.choice(['2-' + '9' * 99, '9' * 5000, '2.'])}\tw")
    ).encode(),
    "heads": lambda draw: conllu([0, draw.choice([10**400, -1, 3])]).encode(),
}


NAMES = [
    "<script>x</script>",
    "a | b | c",
    "`a`",
    "[x](https://e.org)",
    "https://e.org",
    "x\n| y | z |",
    "abc\u202egnp.exe",
    "\u2066abc\u2069",
    "![x](https://e.org/x.png)",
    "a\x1b[31mb",
    "<!-- ",
    "&lt;b&gt;",
]


def names(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Names of models that would be markup in the table and in the report."""
    return [
        Hostile(repr(name), partial(shown, name + str(draw.random())))
        for name in draw.sample(NAMES, count)
    ]


def shown(name: str) -> None:
    """The table has one line and six columns more, and nothing that a renderer would follow."""
    import re

    from hyptrans.support.errors import clean
    from hyptrans.support.tables import escaped

    text = escaped(name)
    assert not re.search(
        r"(?<!\\)[|`<>\[\]*&]|\w://|\n|[\x00-\x1f\u202a-\u202e\u2066-\u2069]", text
    )
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", clean(name))
