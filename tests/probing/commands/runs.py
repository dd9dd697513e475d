"""Command lines that the tests of ``hyptrans probe`` run."""

import json
import random

from probing.commands.cli import PROGRAM, main
from probing.commands.sources import subjects_of
from tests.probing.helpers.model import WORDS
from tests.probing.helpers.trees import random_heads, rows

FAST = ["--steps", "6", "--evaluate-every", "3", "--rank", "8", "--batch-size", "8"]
MODELS = {"hybonet": "hybonet_tiny", "twin": "euclidean_tiny"}


def write_trees(path, count, seed, extra=""):
    """Sentences of the words that the models know, with random trees."""
    rng, blocks = random.Random(seed), []
    for i in range(count):
        words = [*rng.choices(WORDS, k=rng.randint(4, 9)), "."]
        heads = random_heads(len(words), seed=seed * 1000 + i)
        tree = rows(*(head + 1 for head in heads), words=words, tag="NOUN")
        blocks.append(f"# sent_id = s{seed}-{i}\n{tree}")
    path.write_text("".join(blocks) + extra, encoding="utf-8")
    return path


def run_words(made, out, *extra, models=MODELS):
    words = ["run", "--data", str(made / "data"), "--out", str(out)]
    for name in models:
        words += ["--checkpoint", str(made / name / "checkpoint_best.pt")]
    for part in ("train", "dev", "test"):
        words += [f"--{part}", str(made / f"{part}.conllu")]
    return [*words, *FAST, *extra]


def error_of(capsys, words):
    """Return the one-sentence error of a failing command."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return lines[0]


def results_of(out):
    """The results that a run wrote."""
    return json.loads((out / "results.json").read_text())


def subjects(*words):
    """The encoders that options of a run name, without a run."""
    needed = ["--train=a", "--dev=a", "--test=a", "--out=new", "--no-random"]
    return subjects_of(PROGRAM.parser("run")[0].parse_args([*map(str, words), *needed]))
