"""Measure the CPU time per translated token, beside CTranslate2 at the same size.

All models have random weights, a width of 128, 3 + 3 layers and 1,500 words, and produce equally
many tokens for every sentence. One thread, float32. CTranslate2 runs fairseq's Transformer (the
twin's formulas), converted by CTranslate2's converter for fairseq checkpoints, if
``ctranslate2`` is installed. Rows with ONNX run the same models in ONNX Runtime.

example: python -m recipes.benchmark.latency --json latency.json
"""

import argparse
import importlib
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
from hyptrans.data import subwords
from hyptrans.data.moses import TextSteps
from hyptrans.inference.architecture import configuration
from hyptrans.inference.batches import by_length, filled
from hyptrans.inference.contents import Contents
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
from recipes.benchmark.timing import in_turn, processor, task
from recipes.common import options

NAME = "latency"
TWIN, CTRANSLATE2 = "euclidean_prenorm", "CTranslate2"
OURS = (TWIN, "euclidean", "hybonet", "hybonet_plus", "han", "hypformer", "hvt")
BY_ONNX = (TWIN, "hybonet", "hybonet_plus")
SYMBOLS, SHORTEST, LONGEST = 1500, 4, 20
"""Symbols of the dictionary; fewest and most words of a source sentence."""
TASK = task(SYMBOLS)
WORDS = TASK.target_dictionary
ALONE = 25
"""One in this many sentences is also translated alone."""
MADE = 16
"""Tokens of each translation, including the end of the sentence."""
LAYERS = {"encoder_layers": 3, "decoder_layers": 3}
OPTIONS = {**flags_of("tiny"), **LAYERS, "share_all_embeddings": True}
LANGUAGES = ("aa", "bb")

Translate = Callable[[Sequence[Sequence[int]], int], int]
"""Translates sentences with a beam size; returns the number of tokens per translation."""


def make(arch: str, out: Path, *, graphs: bool = False) -> None:
    """Write a model folder with random weights, and ONNX ``graphs``."""
    torch.manual_seed(1)
    model = ARCHITECTURES[arch].build(configuration(arch, OPTIONS), WORDS, WORDS)
    source, target = map(TextSteps, LANGUAGES)
    rules = TextRules(subwords.WORDS, None, False, (source, target))
    words, parameters = (WORDS, WORDS), model.state_dict()
    contents = Contents(arch, arch, OPTIONS, LANGUAGES, words, parameters, rules)
    write = partial(export.write, model.eval()) if graphs else None
    folder.write(contents, out, card="# random\n", precision="full", graphs=write)


def ours(place: Path, engine: str = "torch") -> Translate:
    """Return the search that :func:`hyptrans.load` uses for a model folder."""
    translator, most = hyptrans.load(place, engine=engine), MADE - 1

    def translate(rows: Sequence[Sequence[int]], beam: int) -> int:
        found = []
        for batch in by_length([len(row) for row in rows], BATCH_TOKENS, "", False):
            source = filled([rows[i] for i in batch], WORDS, left=True)
            nothing = np.zeros((len(batch), 0), dtype=np.int64)
            # no method of a user fixes the lengths
            settings = Settings(beam=beam, shortest=most)
            found += translator._search(source, most, settings, nothing)
        return len(found[0][0].tokens)

    return translate


def ctranslate2(data: Path, out: Path) -> Translate:
    """Convert fairseq's Transformer with the twin's options to CTranslate2; return its search.

    ``data`` has the dictionaries.
    """
    import hyptrans.fairseq

    # isort: split
    from fairseq.models import build_model

    library, (source, target) = importlib.import_module("ctranslate2"), LANGUAGES
    norms = {"encoder_normalize_before": True, "decoder_normalize_before": True}
    cfg = argparse.Namespace(arch="transformer", task="translation", **OPTIONS, **norms)
    cfg.source_lang, cfg.target_lang = source, target
    out.mkdir()
    torch.save({"args": cfg, "model": build_model(cfg, TASK).state_dict()}, out / "twin.pt")
    made_of = {"user_dir": str(Path(hyptrans.__file__).parent), "unsafe_deserialization": True}
    files = str(out / "twin.pt"), str(data)
    converter = library.converters.FairseqConverter(*files, **made_of)
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
    """Return CPU seconds per token by model and way, as medians over alternating rounds.

    A way is to translate sentences in batches or one by one, with a beam or greedily.
    """
    draw = random.Random(1)
    rows = [
        [*(draw.randrange(4, SYMBOLS) for _ in range(draw.randint(SHORTEST, LONGEST))), 2]
        for _ in range(sentences)
    ]
    cuts = {"batches": [rows], "one by one": [[row] for row in rows[: -(-sentences // ALONE)]]}
    ways = {
        f"{cut}, {name}": (parts, beam)
        for cut, parts in cuts.items()
        for name, beam in ((f"beam {BEAM}", BEAM), ("greedy", 1))
    }
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        for arch in OURS:
            make(arch, out / arch, graphs=arch in BY_ONNX)
        models = {arch: ours(out / arch) for arch in OURS}
        models |= {f"{arch}, ONNX": ours(out / arch, "onnx") for arch in BY_ONNX}
        if find_spec("ctranslate2"):
            models[CTRANSLATE2] = ctranslate2(out / TWIN, out / "ctranslate2")
        else:
            print("CTranslate2 is left out: pip install ctranslate2", file=sys.stderr)

    def once(name: str, way: str) -> None:
        parts, beam = ways[way]
        lengths = {models[name](part, beam) for part in parts}
        assert lengths == {MADE}, (name, lengths)

    turns = {(name, way): partial(once, name, way) for way in ways for name in models}
    taken = in_turn(turns, rounds + 1, time.process_time)
    tokens = {way: MADE * sum(map(len, parts)) for way, (parts, _) in ways.items()}
    # the first round warms up
    return {
        name: {way: statistics.median(taken[name, way][1:]) / tokens[way] for way in ways}
        for name in models
    }


def table(found: Mapping[str, Any]) -> str:
    """Write microseconds per token, with the multiple of the twin's time in brackets."""
    now = found["now"]
    twin = now["seconds"][TWIN]
    lines = [
        [name, *(f"{1e6 * ways[way]:,.0f} ({ways[way] / twin[way]:.2f})" for way in twin)]
        for name, ways in now["seconds"].items()
    ]
    about = ", ".join(map(" ".join, now["versions"].items()))
    return f"{tables.markdown(['model', *twin], lines)}\n\n{now['device']}, 1 thread; {about}"


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
