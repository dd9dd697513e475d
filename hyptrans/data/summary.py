"""Summarize a prepared data set for the user, and suggest the next command."""

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hyptrans.data.plan import Job
from hyptrans.support.errors import one_line


def summary(
    job: Job,
    sets: Iterable[str],
    size: Callable[[str], int],
    notes: Mapping[str, Mapping[str, Any]],
) -> str:
    """Return the sizes of a prepared data set, its subwords, and anything unusual.

    Args:
        job: the options.
        sets: names of the sets.
        size: returns the number of pairs of a set.
        notes: what each step returned, by name.
    """
    names = dict.fromkeys([*sets, *(["valid"] if "valid" not in sets else [])])
    lines = [*_sizes(names, size, notes), *_subwords(job, notes), *_oddities(job, notes)]
    return "\n".join(map(one_line, lines))


def _sizes(
    names: Iterable[str], size: Callable[[str], int], notes: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    for name in names:
        dropped: Counter[str] = Counter()
        for step in (f"clean {name}", f"clean {name} subwords"):
            dropped.update(notes.get(step, {}).get("dropped", {}))
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items())
        yield f"{name}: {size(name):,} pairs" + (f"; dropped: {reasons}" if reasons else "")


def _subwords(job: Job, notes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    learned = notes.get("learn subwords")
    if learned is None:
        yield "subwords: none, words by spaces"
    else:
        unit = "merges" if job.bpe == "subword-nmt" else "pieces"
        less = job.size_adapts and learned[unit] < job.vocab_size
        adapted = f", as this text supports no {job.vocab_size:,}" if less else ""
        yield f"subwords: {learned[unit]:,} {unit} of {job.bpe}{adapted}"
        if share := learned.get("character coverage"):
            yield f"the most frequent characters, {100 * share:g} % of the text, are in pieces"
    sizes = [f"{lang} {notes['dictionaries'][lang]:,}" for lang in job.languages]
    joined = ", joined" if job.joined_dictionary else ""
    yield f"symbols of the dictionaries{joined}: {', '.join(sizes)}"


def _oddities(job: Job, notes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if replaced := sum(sum(one.get("characters replaced", {}).values()) for one in notes.values()):
        yield f"characters replaced: {replaced:,}"
    shares = {name: noted.get("percent unknown") for name, noted in notes.items()}
    if unknown := [f"{name.split()[-1]} {share:g} %" for name, share in shares.items() if share]:
        yield f"unknown tokens: {', '.join(unknown)}"
    for lang in job.languages:
        rules = notes.get(f"tokenize train.{lang}", {}).get("moses rules of", lang)
        if rules != lang:
            yield f"tokenized by Moses' rules of {rules}, as it has none of {lang}"


def next_command(job: Job) -> str:
    """Return a shell command that trains on the data set from the current folder."""
    out = os.path.relpath(job.out) if job.out.is_relative_to(Path.cwd()) else str(job.out)
    command = ["hyptrans", "train", out, "--arch", "hybonet_plus_iwslt_d64"]
    return shlex.join([*command, "--out", f"runs/{job.out.name}"])
