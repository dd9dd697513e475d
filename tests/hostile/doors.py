"""Every door for files, with what should not stand there: pipes, devices, links, other text."""

import json
import os
import random
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.hostile import checkpoints, encoders, models, sets, stores, texts
from tests.hostile.archives import WANTED, header, packed, padded, table, unpack
from tests.hostile.folders import translate
from tests.hostile.running import SECRET, Hostile, ordinary


class Door(NamedTuple):
    """A file in a folder of ordinary ones, and what reads it there."""

    name: str
    use: Callable[[Path], object]


def read_set(folder: Path) -> None:
    sets.read(folder / "set")


def read_text(folder: Path) -> None:
    texts.read("plain", folder / "text.en")


def read_manifest(folder: Path) -> None:
    from hyptrans.data import recorded

    recorded.read(folder)


def compare(folder: Path) -> None:
    """As ``hyptrans compare`` reads its texts."""
    from hyptrans.support.lines import read_lines

    list(read_lines(folder / "text.en"))


def read_probes(folder: Path) -> None:
    from probing.probes.file import load_probes

    load_probes(folder / "probes")


def read_table(folder: Path) -> None:
    from hyptrans.data.sources.tatoeba import read_table as read

    list(read(folder / "table.zip"))


def with_data(use: Callable[[Path, Path], object]) -> Callable[[Path], object]:
    return lambda folder: use(folder / "c.pt", folder)


def translated(folder: Path) -> None:
    translate(folder / "model")


def codes(folder: Path) -> None:
    from hyptrans.inference.text import from_data

    rules = from_data(folder, ("en", "de"), {"subword-nmt": folder / "bpe.codes"}, moses=False)
    rules.encoder(0, ())


def by_hf(folder: Path) -> None:
    encoders.read(folder / "hf", fresh=False)


DOORS = {
    "checkpoint, built": Door("c.pt", lambda folder: checkpoints.build(folder / "c.pt")),
    "checkpoint, loaded": Door("c.pt", with_data(models.load)),
    "checkpoint, probed": Door("c.pt", with_data(checkpoints.extract)),
    "checkpoint, averaged": Door("c.pt", lambda folder: models.average(folder / "c.pt")),
    "dictionary of fairseq": Door("dict.en.txt", lambda folder: checkpoints.build(folder / "c.pt")),
    "dictionary": Door("dict.de.txt", with_data(models.load)),
    "codes": Door("bpe.codes", codes),
    "manifest": Door("manifest.json", read_manifest),
    "index of a set": Door("set.idx", read_set),
    "words of a set": Door("set.bin", read_set),
    "text": Door("text.en", read_text),
    "text to compare": Door("text.en", compare),
    "trees": Door("trees.conllu", lambda folder: stores.read_trees(folder / "trees.conllu")),
    "states": Door("states", lambda folder: stores.read_states(folder / "states")),
    "probes": Door("probes", read_probes),
    "archive": Door("archive.tar", lambda folder: unpack(folder / "archive.tar", folder / "out")),
    "table": Door("table.zip", read_table),
    **{
        f"model folder, {name}": Door(f"model/{name}", translated)
        for name in ("config.json", "dict.en.txt", "model.safetensors", "sentencepiece.model")
    },
    **{
        f"encoder, {name}": Door(f"hf/{name}", by_hf)
        for name in ("config.json", "tokenizer.json", "model.safetensors")
    },
}


def whole(folder: Path, draw: random.Random) -> Path:
    """A folder with an ordinary file behind every door."""
    from hyptrans.inference.load import SHIPPED
    from tests.probing.helpers import huggingface

    made = checkpoints.data_folder(folder)
    state = checkpoints.stored("euclidean_tiny", folder, *models.NARROW)
    checkpoints.written(state, made / "c.pt")
    (made / "bpe.codes").write_text("#version: 0.2\nt h\nth e</w>\n")
    step = {"name": "tokenize test.en", "steps": "tokenize"}
    about = {"command": [], "inputs": {}, "outputs": {"bpe.codes": {}}, "steps": [step]}
    (made / "manifest.json").write_text(json.dumps({**about, "languages": ["en", "de"]}))
    sets.written(made / "set", draw)
    (made / "text.en").write_text("one\ntwo\n")
    (made / "trees.conllu").write_text(stores.conllu([2, 0, 2]))
    stores.written(made / "states")
    stores.written_probes(made / "probes")
    members = b"".join(header(name, b"0", 4) + padded(b"one\n") for name in WANTED)
    packed(made / "archive.tar", members + bytes(1024), zipped=False)
    (made / "table.zip").write_bytes(table("deu.txt", 9))
    (made / "model").symlink_to(SHIPPED / "tatoeba-en-de")
    huggingface.save(made / "hf")
    return made


def beside(made: Path, place: Path, name: str) -> Path:
    """A folder of links to all files of another, but that of the name, which is not there."""
    place.mkdir()
    first, _, rest = name.partition("/")
    for entry in made.iterdir():
        if entry.name != first:
            (place / entry.name).symlink_to(entry)
    return beside(made / first, place / first, rest) if rest else place / first


def doors(draw: random.Random, folder: Path, count: int, kinds: dict[str, Callable]) -> list:
    """Each kind of thing behind every door, once."""
    made = whole(folder, draw)
    tries = [ordinary(partial(door.use, made)) for door in DOORS.values()]
    for door in DOORS.values():
        door.use(made)  # what is imported here, no fork imports
    pairs = [(door, kind) for door in DOORS for kind in kinds]
    for i, (door, kind) in enumerate(draw.sample(pairs, count)):
        kinds[kind](draw, beside(made, folder / f"door{i}", DOORS[door].name))
        tries.append(Hostile(f"{kind} as {door}", partial(DOORS[door].use, folder / f"door{i}")))
    return tries


def named(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Damaged files in folders of names that a terminal would act on."""
    made = whole(folder, draw)
    tries = []
    for i, door in enumerate([*DOORS, *DOORS][:count]):
        DOORS[door].use(made)  # what is imported here, no fork imports
        place = folder / f"{draw.choice(TERMINAL)}{i}"
        file = beside(made, place, DOORS[door].name)
        if draw.random() < 0.7:
            file.write_bytes(
                draw.choice([b"\x1b]0;x\x07", b"a\x1b[2Jb 1\n" * 2, "\u202e".encode()])
            )
        tries.append(Hostile(f"{door} in {place.name!r}", partial(DOORS[door].use, place)))
    return tries


TERMINAL = ["\x1b[31mx", "\x1b]0;x\x07", "x\u202ey", "\x9b2J", "\x1b[2J\x1b[H", "\x07", "x\r\x08y"]
"""In names of files and folders."""


def pipe(draw: random.Random, path: Path) -> None:
    os.mkfifo(path)


def link_to_pipe(draw: random.Random, path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def device(draw: random.Random, path: Path) -> None:
    """One without end, one that is empty, one that waits for what is typed."""
    path.symlink_to(draw.choice(["/dev/zero", "/dev/null", "/dev/urandom", "/dev/full"]))


def own_socket(draw: random.Random, path: Path) -> None:
    """Its name is short, or the system takes none."""
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(path.parent, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)


def folder_for_file(draw: random.Random, path: Path) -> None:
    path.mkdir()


def to_itself(draw: random.Random, path: Path) -> None:
    path.symlink_to(path.name)


SPECIAL = {
    "a pipe": pipe,
    "a link to a pipe": link_to_pipe,
    "a device": device,
    "a socket": own_socket,
    "a folder": folder_for_file,
    "a link to itself": to_itself,
}

_LINES = {
    "a line": f"{SECRET}\n",
    "lines": f"a 1\nb 2\n{SECRET} {SECRET} {SECRET}\n",
    "a key": f"-----BEGIN KEY-----\n{SECRET}\n-----END KEY-----\n",
    "settings": f"user={SECRET}\n{SECRET} = x\n",
    "an object": json.dumps({SECRET: SECRET, "library_name": SECRET, "languages": [SECRET] * 2}),
    "columns": "\t".join([SECRET] * 10) + "\n\n",
    "numbered columns": "\t".join(["1", *[SECRET] * 9]) + "\n\n",
    "a sentence": f"# text = {SECRET}\n1\t{SECRET}\t_\tX\t_\t_\t2\tx\t_\t_\n",
    "a count twice": f"{SECRET} 1\n{SECRET} 1\n",
    "a version": f"#version: {SECRET}\n{SECRET}\n",
    "a start of a pickle": f"\x80\x02c{SECRET}\n{SECRET}\n.",
    "a header": '{"a":{"dtype":"' + SECRET + '","shape":[1],"data_offsets":[0,4]}}',
}


def linked(text: str, draw: random.Random, path: Path) -> None:
    """A link to a file of the user's."""
    secret = path.with_name("of the user's")
    data = text.encode()
    # safetensors begins with the length of its header
    secret.write_bytes(len(data).to_bytes(8, "little") + data if text.startswith('{"a"') else data)
    path.symlink_to(secret.name)


LINKS = {name: partial(linked, text) for name, text in _LINES.items()}
