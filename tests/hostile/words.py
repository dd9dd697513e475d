"""Dictionaries, and subword models that are cut or another's."""

import gzip
import io
import random
import shutil
from functools import partial
from pathlib import Path

import sentencepiece

from hyptrans.inference.load import SHIPPED
from tests.hostile.checkpoints import build, stored, with_option, written
from tests.hostile.models import NARROW
from tests.hostile.running import Hostile, ordinary

WHOLE = SHIPPED / "tatoeba-en-de"
MODEL = "sentencepiece.model"


def pieces_of(folder: Path, expected: list[str]) -> None:
    """A text becomes the pieces that it becomes by the whole model, or there is one sentence."""
    from hyptrans.inference.sharing import folder as model_folder

    contents = model_folder.read(folder)
    split = contents.text.encoder(0, contents.dictionaries[0].indices)
    assert split("The merchant ①  rests, doesn't he?") == expected, "it splits text otherwise"


def expected() -> list[str]:
    from hyptrans.inference.sharing import folder as model_folder

    contents = model_folder.read(WHOLE)
    split = contents.text.encoder(0, contents.dictionaries[0].indices)
    return split("The merchant ①  rests, doesn't he?")


def with_model(place: Path, model: bytes) -> Path:
    shutil.copytree(WHOLE, place)
    (place / MODEL).write_bytes(model)
    return place


def others(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """A whole model, of other pieces than the dictionaries have."""
    use = partial(pieces_of, expected=expected())
    tries = [ordinary(partial(use, WHOLE))]
    for i in range(count):
        made = io.BytesIO()
        lines = [
            " ".join(draw.choices(["the", "dog", "one", "two", "rests"], k=4)) for _ in range(99)
        ]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=made,
            model_type=["unigram", "bpe", "char", "word"][i % 4],
            vocab_size=draw.randint(20, 30),
            hard_vocab_limit=False,
            minloglevel=2,
        )
        place = with_model(folder / f"other{i}", made.getvalue())
        tries.append(Hostile("another model", partial(use, place)))
    return tries


def of_fairseq(path: Path) -> None:
    """As the ``fairseq-*`` commands do."""
    from fairseq.data import Dictionary

    Dictionary.load(str(path))


def of_ours(path: Path) -> None:
    """As ``hyptrans`` does."""
    from hyptrans.inference.dictionary import Dictionary

    Dictionary.load(path)


DIGITS = ["\u0661", "\u00b2", "1_0", "--1", "+1", "0x1"]
DICTIONARIES = {
    "lines without end": lambda draw: b"a 1\n" * draw.randint(5_000_000, 6_000_000),
    "empty lines without end": lambda draw: b"\n" * draw.randint(5_000_000, 9_000_000),
    "other lines without end": lambda draw: b"".join(b"%d 1\n" % i for i in range(5_000_000)),
    "a word without end": lambda draw: b"a" * draw.randint(65 << 20, 99 << 20) + b" 1\n",
    "zeros": lambda draw: bytes(draw.randint(65 << 20, 99 << 20)),
    "the same word": lambda draw: b"a 1\n" * 900_000,
    "words that overwrite": lambda draw: b"a 1 #fairseq:overwrite\n" * 900_000,
    "a large count": lambda draw: b"a " + b"9" * draw.choice([99, 4_000, 10**6]) + b"\n",
    "no count": lambda draw: draw.choice(
        [b"a\n", b"a b\n", b" 1\n", b"a 1.5\n", b"a inf\n", b"1\n"]
    ),
    "other digits": lambda draw: f"a {draw.choice(DIGITS)}\n".encode(),
    "another encoding": lambda draw: draw.choice(
        ["a 1\nä 1\n".encode("latin1"), b"a 1\n\xff\xfe 1\n"]
    ),
    "other ends of lines": lambda draw: "a 1\u2028b 1\x85c 1\x1cd 1\r\n".encode(),
    "words for the terminal": lambda draw: b"\x1b[31m\x07 1\n\x1b[31m\x07 1\n",
    "nothing": lambda draw: draw.choice([b"", b"\n", b"\n\n\n", b" \n"]),
    "its own symbols": lambda draw: draw.choice([b"<pad> 1\n", b"<s> 1\n</s> 1\n", b"<unk> 1\n"]),
    "packed": lambda draw: gzip.compress(b"a 1\n" * 9),
}


def dictionaries(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Long ones, and lines that are no word and its count."""
    whole = folder / "dict.en.txt"
    whole.write_text("a 1\nb 2\n")
    state = stored("euclidean_tiny", folder, *NARROW)
    tries = [ordinary(partial(of_fairseq, whole)), ordinary(partial(of_ours, whole))]
    for i in range(count):
        kind = list(DICTIONARIES)[i % len(DICTIONARIES)]
        place = folder / f"data{i}"
        place.mkdir()
        (place / "dict.de.txt").write_text("a 1\n")
        path = place / "dict.en.txt"
        path.write_bytes(DICTIONARIES[kind](draw))
        checkpoint = written(with_option(state, "task", "data", str(place)), place / "c.pt")
        uses = [partial(of_fairseq, path), partial(of_ours, path), partial(build, checkpoint)]
        tries.append(Hostile(kind, uses[(i + i // len(DICTIONARIES)) % 3]))
    return tries
