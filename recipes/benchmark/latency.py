"""Measure the CPU time per translated token, beside CTranslate2 at the same size.

All models have random weights, a width of 128, 3 + 3 layers and 1,500 words, and produce equally
many tokens for every sentence. One thread, float32. CTranslate2 runs fairseq's Transformer (the
twin's formulas), converted by CTranslate2's converter for fairseq checkpoints, if
``ctranslate2`` is installed. Rows with ONNX run the same models in ONNX Runtime.

example: python -m recipes.benchmark.latency --json latency.json
"""

from __future__ import annotations

import argparse
import functools
import importlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

import hyptrans
from hyptrans.data.moses import TextSteps
from hyptrans.data.subwords import WORDS
from hyptrans.inference.architecture import configuration, require_known
from hyptrans.inference.batches import by_length, filled, padded
from hyptrans.inference.beams import search as search_arrays
from hyptrans.inference.contents import Contents
from hyptrans.inference.dictionary import Dictionary
from hyptrans.inference.onnx import export
from hyptrans.inference.onnx.engine import Graphs, Running
from hyptrans.inference.options import BATCH_TOKENS, BEAM, Settings
from hyptrans.inference.search import search
from hyptrans.inference.sharing import folder
from hyptrans.inference.text import TextRules
from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.seq2seq.sizes import flags_of
from hyptrans.support import tables
from hyptrans.support.errors import run_command
from hyptrans.support.files import write_json
from hyptrans.support.provenance import versions
from recipes.benchmark.speed import processor
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


def made(arch: str, out: Path) -> argparse.Namespace:
    """Write a model folder with random weights and return the model's options."""
    asked, words = {**flags_of("tiny"), **LAYERS, "share_all_embeddings": True}, dictionary()
    if arch == TWIN:
        asked |= {f"{side}_normalize_before": True for side in ("encoder", "decoder")}
    name = require_known("transformer" if arch.startswith("euclidean") else arch)
    torch.manual_seed(1)
    model = ARCHITECTURES[name].build(configuration(name, asked), words, words)
    source, target = map(TextSteps, LANGUAGES)
    rules = TextRules(WORDS, None, False, (source, target))
    parts = (name, asked, LANGUAGES, (words, words), model.state_dict())
    folder.write(Contents(arch, *parts, rules), out, card="# random\n", precision="full")
    return argparse.Namespace(**asked, arch=name)


def batches(rows: Sequence[Sequence[int]]) -> list[torch.Tensor]:
    """Return batches of the sentences' tokens, padded on the left."""
    found = by_length([len(row) for row in rows], BATCH_TOKENS, "", False)
    return [padded([rows[i] for i in batch], dictionary(), left=True) for batch in found]


def ours(place: Path) -> Translate:
    """Return the search that :func:`hyptrans.load` uses for a model folder."""
    models, most = hyptrans.load(place).models, MADE - 1

    def translate(rows: Sequence[Sequence[int]], beam: int) -> int:
        asked = Settings(beam=beam, shortest=most)
        found = [search(models, source, most, asked) for source in batches(rows)]
        return len(found[0][0][0].tokens)

    return translate


def by_onnx(place: Path) -> Translate:
    """Add ONNX graphs to the model folder and return the search of engine ``onnx``."""
    about = export.write(hyptrans.load(place).model, place)
    graphs, most, words = Graphs(place, about["sha256"]), MADE - 1, dictionary()

    def translate(rows: Sequence[Sequence[int]], beam: int) -> int:
        asked, made = Settings(beam=beam, shortest=most), 0
        for batch in by_length([len(row) for row in rows], BATCH_TOKENS, "", False):
            source = filled([rows[i] for i in batch], words, left=True)
            nothing = np.zeros((len(batch), 0), dtype=np.int64)
            running = Running([graphs], source, source == words.pad())
            found = search_arrays(running, most, asked, nothing, words)
            made = len(found[0][0].tokens)
        return made

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
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        kept = {arch: made(arch, out / arch) for arch in OURS}
        models = {arch: ours(out / arch) for arch in OURS}
        models |= {f"{arch}, ONNX": by_onnx(out / arch) for arch in BY_ONNX}
        if find_spec("ctranslate2"):
            models[CTRANSLATE2] = ctranslate2(kept[TWIN], out / "ctranslate2")
        else:
            print("CTranslate2 is left out: pip install ctranslate2", file=sys.stderr)
    taken: dict[tuple[str, str], list[float]] = {}
    for _ in tqdm(range(rounds + 1), unit="round", disable=None):
        for way, (batched, beam) in WAYS.items():
            given = [rows] if batched else [[row] for row in rows[: -(-sentences // ALONE)]]
            for name, model in models.items():
                start = time.process_time()
                lengths = {model(one, beam) for one in given}
                spent = time.process_time() - start
                assert lengths == {MADE}, (name, lengths)
                taken.setdefault((name, way), []).append(spent / MADE / sum(map(len, given)))
    # the first round warms up
    return {name: {way: statistics.median(taken[name, way][1:]) for way in WAYS} for name in models}


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
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="file to write the measurements to"
    )
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
