"""Measure the CPU time per translated token, beside CTranslate2 at the same size.

All models have random weights, a width of 128, 3 + 3 layers and 1,500 words, and produce equally
many tokens for every sentence. One thread, float32. CTranslate2 runs fairseq's Transformer (the
twin's formulas), converted by CTranslate2's converter for fairseq checkpoints, if
``ctranslate2`` is installed. Rows with ONNX run the same models in ONNX Runtime.

example: python -m recipes.benchmark.latency --json latency.json
"""

import argparse
import functools
import importlib
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

import hyptrans
from hyptrans.data.moses import TextSteps
from hyptrans.data.subwords import WORDS
from hyptrans.inference.architecture import configuration
from hyptrans.inference.batches import by_length, filled
from hyptrans.inference.contents import Contents
from hyptrans.inference.dictionary import Dictionary
from hyptrans.inference.onnx import export
from hyptrans.inference.options import BATCH_TOKENS, BEAM, Settings
from hyptrans.inference.sharing import folder
from hyptrans.inference.text import TextRules
from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.seq2seq.sizes import flags_of
from hyptrans.support import tables
from hyptrans.support.errors import run_command
from hyptrans.support.files import write_json
from hyptrans.support.provenance import versions
from recipes.benchmark.timing import in_turn, processor
from recipes.common import options

NAME = "latency"
TWIN, CTRANSLATE2 = "euclidean_prenorm", "CTranslate2"
OURS = (TWIN, "euclidean", "hybonet", "hybonet_plus", "han", "hypformer", "hvt")
BY_ONNX = (TWIN, "hybonet", "hybonet_plus")
SYMBOLS, SHORTEST, LONGEST = 1500, 4, 20
"""Symbols of the dictionary; fewest and most words of a source sentence."""
ALONE = 25
"""One in this many sentences is also translated alone."""
MADE = 16
"""Tokens of each translation, including the end of the sentence."""
LAYERS = {f"{side}_layers": 3 for side in ("encoder", "decoder")}
LANGUAGES = ("aa", "bb")
WAYS = {
    f"{how}, {name}": (batched, beam)
    for how, batched in (("batches", True), ("one by one", False))
    for name, beam in ((f"beam {BEAM}", BEAM), ("greedy", 1))
}
"""Columns: whether sentences are translated in batches, and the beam size."""

Translate = Callable[[Sequence[Sequence[int]], int], int]
"""Translates sentences with a beam size; returns the number of tokens per translation."""


@functools.cache
def dictionary() -> Dictionary:
    """Return a dictionary of the words w4, w5 and so on after the special symbols."""
    words = Dictionary()
    for number in range(len(words), SYMBOLS):
        words.add(f"w{number}", 1)
    return words


def made(arch: str, out: Path, *, graphs: bool = False) -> argparse.Namespace:
    """Write a model folder with random weights, and ONNX ``graphs``; return the options."""
    config, words = {**flags_of("tiny"), **LAYERS, "share_all_embeddings": True}, dictionary()
    if arch == TWIN:
        config |= {f"{side}_normalize_before": True for side in ("encoder", "decoder")}
    name = "transformer" if arch.startswith("euclidean") else arch
    torch.manual_seed(1)
    model = ARCHITECTURES[name].build(configuration(name, config), words, words)
    source, target = map(TextSteps, LANGUAGES)
    rules = TextRules(WORDS, None, False, (source, target))
    contents = Contents(arch, name, config, LANGUAGES, (words, words), model.state_dict(), rules)
    write = partial(export.write, model.eval()) if graphs else None
    folder.write(contents, out, card="# random\n", precision="full", graphs=write)
    return argparse.Namespace(**config, arch=name)


def ours(place: Path, engine: str = "torch") -> Translate:
    """Return the search that :func:`hyptrans.load` uses for a model folder."""
    translator, most = hyptrans.load(place, engine=engine), MADE - 1

    def translate(rows: Sequence[Sequence[int]], beam: int) -> int:
        found = []
        for batch in by_length([len(row) for row in rows], BATCH_TOKENS, "", False):
            source = filled([rows[i] for i in batch], dictionary(), left=True)
            nothing = np.zeros((len(batch), 0), dtype=np.int64)
            # no method of a user fixes the lengths
            settings = Settings(beam=beam, shortest=most)
            found += translator._search(source, most, settings, nothing)
        return len(found[0][0].tokens)

    return translate


def fairseqs_own(args: argparse.Namespace) -> torch.nn.Module:
    """Return fairseq's Transformer with a twin's options and random weights."""
    import hyptrans.fairseq  # noqa: F401 - makes fairseq importable

    # isort: split
    from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

    ARCH_CONFIG_REGISTRY[args.arch](args)
    task = argparse.Namespace(source_dictionary=dictionary(), target_dictionary=dictionary())
    model: torch.nn.Module = ARCH_MODEL_REGISTRY[args.arch].build_model(args, task)
    return model


def ctranslate2(args: argparse.Namespace, out: Path) -> Translate:
    """Convert fairseq's Transformer with a twin's options to CTranslate2 and return its search."""
    library = importlib.import_module("ctranslate2")
    data = out.parent / TWIN
    args.task, (args.source_lang, args.target_lang) = "translation", LANGUAGES
    out.mkdir()
    torch.save({"args": args, "model": fairseqs_own(args).state_dict()}, out / "twin.pt")
    made_of = {"user_dir": str(Path(hyptrans.__file__).parent), "unsafe_deserialization": True}
    converter = library.converters.FairseqConverter(str(out / "twin.pt"), str(data), **made_of)
    converter.convert(str(out / "converted"))
    translator = library.Translator(str(out / "converted"), intra_threads=1, inter_threads=1)

    def translate(rows: Sequence[Sequence[int]], beam: int) -> int:
        tokens = [[f"w{token}" for token in row[:-1]] for row in rows]
        lengths = {"min_decoding_length": MADE, "max_decoding_length": MADE}
        sizes = {"max_batch_size": BATCH_TOKENS, "batch_type": "tokens"}
        found = translator.translate_batch(tokens, beam_size=beam, **lengths, **sizes)
        return len(found[0].hypotheses[0])

    return translate


def measure(sentences: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return CPU seconds per token by model and way, as medians over alternating rounds."""
    draw = random.Random(1)
    rows = [
        [*(draw.randrange(4, SYMBOLS) for _ in range(draw.randint(SHORTEST, LONGEST))), 2]
        for _ in range(sentences)
    ]
    alone = [[row] for row in rows[: -(-sentences // ALONE)]]
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        kept = {arch: made(arch, out / arch, graphs=arch in BY_ONNX) for arch in OURS}
        models = {arch: ours(out / arch) for arch in OURS}
        models |= {f"{arch}, ONNX": ours(out / arch, "onnx") for arch in BY_ONNX}
        if find_spec("ctranslate2"):
            models[CTRANSLATE2] = ctranslate2(kept[TWIN], out / "ctranslate2")
        else:
            print("CTranslate2 is left out: pip install ctranslate2", file=sys.stderr)

    def once(name: str, way: str) -> None:
        batched, beam = WAYS[way]
        lengths = {models[name](one, beam) for one in ([rows] if batched else alone)}
        assert lengths == {MADE}, (name, lengths)

    turns = {(name, way): partial(once, name, way) for way, name in itertools.product(WAYS, models)}
    taken = in_turn(turns, rounds + 1, time.process_time)
    counts = {way: MADE * len(rows if batched else alone) for way, (batched, _) in WAYS.items()}
    # the first round warms up
    return {
        name: {way: statistics.median(taken[name, way][1:]) / counts[way] for way in WAYS}
        for name in models
    }


def table(found: Mapping[str, Any]) -> str:
    """Write microseconds per token, with the multiple of the twin's time in brackets."""
    now = found["now"]
    twin = now["seconds"][TWIN]
    lines = [
        [name, *(f"{1e6 * ways[way]:,.0f} ({ways[way] / twin[way]:.2f})" for way in WAYS)]
        for name, ways in now["seconds"].items()
    ]
    about = ", ".join(f"{name} {version}" for name, version in now["versions"].items())
    return f"{tables.markdown(['model', *WAYS], lines)}\n\n{now['device']}, 1 thread; {about}"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = options.script_parser(__doc__, Path(__file__))
    options.add_number(parser, "--sentences", 500, "sentences to translate")
    options.add_number(parser, "--rounds", 7, "turns of each model")
    about = "file to write the measurements to"
    parser.add_argument("--json", type=Path, metavar="FILE", help=about)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    seconds = measure(args.sentences, args.rounds)
    packages = versions("torch", "onnxruntime", "ctranslate2", "numba")
    found = {"now": {"device": processor(), "versions": packages, "seconds": seconds}}
    print(table(found))
    if args.json:
        write_json(args.json, found)


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
