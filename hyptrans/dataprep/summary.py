"""What a user must know of a prepared data set, and the command to type next."""

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hyptrans.dataprep.plan import Job
from hyptrans.support.errors import one_line

_TRAINING = (
    "--user-dir hyptrans --arch hybonet_plus_iwslt_d64 --optimizer adam --adam-betas '(0.9, 0.98)' "
    "--clip-norm 0.5 --lr 1e-2 --lr-scheduler polynomial_decay --warmup-updates 300 "
    "--total-num-update 3000 --max-update 3000 --dropout 0.2 --attention-dropout 0 "
    "--criterion tiled_label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 4096"
)
"""A training that is soon over, by the rate that was best in the study."""


def summary(job: Job, sizes: Mapping[str, int], notes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what came out of a data set, without what is as it should be.

    Args:
        job: what was asked for.
        sizes: number of pairs of each set.
        notes: what each step found.
    """
    lines = [_set(name, size, notes) for name, size in sizes.items()]
    lines.append(_subwords(job, notes))
    symbols = [
        f"{name.removeprefix('dictionary ')} {count:,}"
        for name, count in notes["binarize"].items()
        if name.startswith("dictionary ")
    ]
    joined = ", joined" if job.joined_dictionary else ""
    lines.append(f"symbols of the dictionaries{joined}: {', '.join(symbols)}")
    lines += _odd(job, notes)
    return "\n".join(map(one_line, lines))


def next_command(job: Job) -> str:
    """Return a line that trains on the data set, for a shell in the current folder."""
    inside = job.out.is_relative_to(Path.cwd())
    out = os.path.relpath(job.out) if inside else str(job.out)
    shared = ["--share-all-embeddings"] if job.joined_dictionary else []
    save = ["--save-dir", f"checkpoints/{job.out.name}"]
    words = ["fairseq-train", os.path.join(out, "data-bin"), *shlex.split(_TRAINING)]
    return shlex.join([*words, *shared, *save])


def _set(name: str, size: int, notes: Mapping[str, Mapping[str, Any]]) -> str:
    dropped: Counter[str] = Counter()
    for step in (f"clean {name}", f"clean {name} subwords"):
        dropped.update(notes.get(step, {}).get("dropped", {}))
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items())
    return f"{name}: {size:,} pairs" + (f"; dropped: {reasons}" if reasons else "")


def _subwords(job: Job, notes: Mapping[str, Mapping[str, Any]]) -> str:
    learned = notes.get("learn subwords")
    if learned is None:
        return "subwords: none, words by spaces"
    unit = "merges" if job.bpe == "subword-nmt" else "pieces"
    line = f"subwords: {learned[unit]:,} {unit} of {job.bpe}"
    if learned[unit] < job.vocab_size and job.size_adapts:
        line += f", as this text supports no {job.vocab_size:,}"
    if learned.get("characters in pieces"):
        line += f"; of its {learned['characters']:,} characters the "
        line += f"{learned['characters in pieces']:,} most frequent (--character-coverage)"
    return line


def _odd(job: Job, notes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What is worth a look where it is not as most texts have it."""
    replaced = sum(sum(found.get("characters replaced", {}).values()) for found in notes.values())
    if replaced:
        yield f"characters replaced: {replaced:,}"
    for lang in job.languages:
        rules = notes.get(f"tokenize train.{lang}", {}).get("moses rules of", lang)
        if rules != lang:
            yield f"tokenized by Moses' rules of {rules}, as it has none of {lang}"
    unknown = {
        name: found["percent unknown"]
        for name, found in notes["binarize"].items()
        if isinstance(found, Mapping) and found.get("percent unknown")
    }
    if unknown:
        yield "unknown tokens: " + ", ".join(
            f"{name} {share:g} %" for name, share in unknown.items()
        )
