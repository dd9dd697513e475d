"""The steps that every data set goes through, from raw text to numbers."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from hyptrans.data import dictionary, indexed, learn, subwords
from hyptrans.data.clean import CleanRule
from hyptrans.data.corpus import Scrubber, write_pairs, zip_sides
from hyptrans.data.moses import TextSteps, moses_rules
from hyptrans.data.parallel import LineFunction, map_lines
from hyptrans.data.plan import Job, Plan, Tally
from hyptrans.support.errors import UserError
from hyptrans.support.lines import read_lines, write_lines
from hyptrans.support.progress import bar
from hyptrans.support.steps import Notes, Step

# no bar for steps that end quickly
_bar = partial(bar, delay=2.0)

Sides = tuple[Path, Path]
"""The files of a set, source and target."""


class Stages:
    """Takes the sets from raw text to ``data-bin``, with one folder per stage under ``job.work``.

    Args:
        plan: the sets and what happens to them.
        job: the shared options.
        settings: all that decides the outputs of the steps.
        notes: what earlier steps returned, by name.

    Attributes:
        result: the folder with the files for the user.
        files: these files.
    """

    def __init__(
        self, plan: Plan, job: Job, settings: Mapping[str, Any], notes: Mapping[str, Notes]
    ) -> None:
        self.plan, self.job, self.settings, self.notes = plan, job, settings, notes
        self.result = job.work / "result"
        self._data_bin = self.result / "data-bin"
        name = subwords.MODEL_NAMES.get(job.bpe)
        self._model = self.result / name if name else None
        self._tests = [name for name in plan.sets if name.startswith("test")]
        self._text = {name: self._files("raw", name) for name in plan.sets}
        self._encoded: dict[str, Sides] = {}
        self._dictionaries = {lang: self._data_bin / f"dict.{lang}.txt" for lang in job.languages}
        self._pieces = {lang: job.work / "pieces" / lang for lang in job.languages}
        self.files = [*self._dictionaries.values(), *([self._model] if self._model else [])]
        self.files += [path for test in self._tests for path in self._text[test]]

    def steps(self) -> Iterator[Step]:
        """Yield all steps in order."""
        for step in self.plan.before:
            yield replace(step, settings=self.settings)
        for name in self.plan.sets:
            yield self._step(f"read {name}", self._text[name], partial(self._read, name))
            yield from self._tokenize(name)
        yield self._clean_text()
        if self._model:
            yield self._step("learn subwords", [self._model], self._learn)
        yield from self._encode("train")
        outputs = [*self._dictionaries.values(), *self._pieces.values()]
        yield self._step("dictionaries", outputs, self._write_dictionaries)
        for name in ("valid", *self._tests):
            yield from self._encode(name)
        for name in ("train", "valid", *self._tests):
            yield from self._binarize(name)

    def size(self, name: str) -> int:
        """Return the number of pairs of a set so far."""
        sizes = (
            self.notes.get(f"clean {name} subwords", {}).get("kept"),
            self.notes.get("clean train", {}).get(name),
            self.notes.get(f"read {name}", {}).get("pairs"),
        )
        return next((size for size in sizes if size is not None), 0)

    def _step(
        self, name: str, outputs: Sequence[Path], run: Callable[[], Mapping[str, Any]]
    ) -> Step:
        return Step(name, outputs, run, self.settings)

    def _files(self, stage: str, name: str) -> Sides:
        """Return the files of a set at a stage; the raw test sets are part of the result."""
        final = stage == "raw" and name in self._tests
        folder = (self.result if final else self.job.work) / stage
        source, target = (folder / f"{name}.{lang}" for lang in self.job.languages)
        return source, target

    def _read(self, name: str) -> dict[str, Any]:
        source, tally = self.plan.sets[name], Tally()
        scrub = Scrubber(raw_text=self.job.raw_text)
        pairs = ((scrub(one), scrub(other)) for one, other in source.read(tally))
        count = write_pairs(_bar(pairs, f"read {name}"), *self._files("raw", name))
        if not count:
            raise UserError(f"the {name} set has no pair in {source.place}")
        return {
            "pairs": count,
            "from": dict(tally.parts),
            "lines left out": _by_name(tally.left_out),
            "characters replaced": _by_name(scrub.counts),
        }

    def _map(
        self, title: str, name: str, build: Callable[[], LineFunction], files: Sides, **more: Any
    ) -> Step:
        """Return a step that maps one file to another by lines; its notes include ``more``."""
        before, after = files

        def work() -> dict[str, Any]:
            lines = map_lines(build, read_lines(before), workers=self.job.workers)
            return {"lines": write_lines(_bar(lines, title, self.size(name)), after), **more}

        return self._step(title, [after], work)

    def _tokenize(self, name: str) -> Iterator[Step]:
        flags = self.plan.text.get(name)
        if not flags:
            return
        before, after = self._text[name], self._files("text", name)
        self._text[name] = after
        done = ", ".join(flag for flag, wanted in flags.items() if wanted)
        for lang, *files in zip(self.job.languages, before, after, strict=True):
            # sacremoses silently falls back to English
            more = {"steps": done, "moses rules of": moses_rules(lang)}
            build = TextSteps(lang, **flags).build
            yield self._map(f"tokenize {name}.{lang}", name, build, (files[0], files[1]), **more)

    def _clean_text(self) -> Step:
        """Return the step that drops training pairs by length and holds out every n-th other."""
        before, rule, n = self._text["train"], self.plan.clean_text, self.plan.held_out
        names = ("train", "valid") if n else ("train",)
        after = {name: self._files("clean", name) for name in names}
        self._text |= after

        def work() -> dict[str, Any]:
            counts = {}
            if n:
                kept, _ = self._kept("hold out", "train", rule, before)
                held = (pair for number, pair in enumerate(kept, 1) if number % n == 0)
                counts = {"valid": write_pairs(held, *after["valid"]), "held out every": n}
            kept, dropped = self._kept("clean train", "train", rule, before)
            rest = (pair for number, pair in enumerate(kept, 1) if not n or number % n)
            counts["train"] = write_pairs(rest, *after["train"])
            for name in names:
                _refuse_none(name, counts[name], dropped)
            return {**counts, "dropped": _by_name(dropped)}

        return self._step("clean train", [path for name in names for path in after[name]], work)

    def _kept(
        self, title: str, name: str, rule: CleanRule | None, files: Sides
    ) -> tuple[Iterator[tuple[str, str]], Counter[str]]:
        """Return the pairs that a rule keeps, and counts of the others by reason."""
        dropped: Counter[str] = Counter()
        pairs = zip_sides(read_lines(files[0]), read_lines(files[1]), *files)
        pairs = _bar(pairs, title, self.size(name))
        return (rule.keep(pairs, dropped) if rule else pairs), dropped

    def _learn(self) -> dict[str, Any]:
        job, texts = self.job, list(self._text["train"])
        assert self._model is not None
        more: dict[str, Any] = {"adapts": job.size_adapts, "coverage": job.character_coverage}
        found = learn.learn(job.bpe, texts, job.vocab_size, self._model, **more)
        return {"kind": job.bpe, **found}

    def _encode(self, name: str) -> Iterator[Step]:
        before, after = self._text[name], self._files("encoded", name)
        self._encoded[name] = after
        restricted = self.job.bpe == "sentencepiece" and name != "train"
        for lang, *files in zip(self.job.languages, before, after, strict=True):
            pieces = self._pieces[lang] if restricted else None
            build = subwords.Encoder(self.job.bpe, self._model, pieces).build
            yield self._map(f"encode {name}.{lang}", name, build, (files[0], files[1]))
        rule = self.plan.clean_subwords
        if rule is None or name in self._tests:
            return
        final = self._encoded[name] = self._files("final", name)
        step = f"clean {name} subwords"

        def work() -> dict[str, Any]:
            kept, dropped = self._kept(step, name, rule, after)
            count = write_pairs(kept, *final)
            _refuse_none(name, count, dropped)
            return {"kept": count, "dropped": _by_name(dropped)}

        yield self._step(step, final, work)

    def _write_dictionaries(self) -> dict[str, int]:
        """Write the dictionaries, and the pieces in the training text: others are spelled out."""
        job, sizes = self.job, {}
        texts = dict(zip(job.languages, self._text["train"], strict=True))
        encoded = dict(zip(job.languages, self._encoded["train"], strict=True))
        # joined: symbols of either side count for both
        for group in [job.languages] if job.joined_dictionary else [[x] for x in job.languages]:
            used = dictionary.count_symbols(encoded[lang] for lang in group)
            spelling: set[str] = set()
            if job.bpe == "sentencepiece":
                lines = (line for lang in group for line in read_lines(texts[lang]))
                # the spelling of a piece that begins a word includes its mark
                spelling = {subwords.WORD_START, *chain.from_iterable(lines)} - {" "}
            for lang in group:
                sizes[lang] = dictionary.write(used, self._dictionaries[lang], spelling)
                write_lines(sorted(used), self._pieces[lang])
        return sizes

    def _binarize(self, name: str) -> Iterator[Step]:
        pair = "-".join(self.job.languages)
        for lang, encoded in zip(self.job.languages, self._encoded[name], strict=True):
            prefix = self._data_bin / f"{name}.{pair}.{lang}"
            outputs = [prefix.with_name(f"{prefix.name}.{ending}") for ending in ("bin", "idx")]
            self.files += outputs
            work = partial(self._numbers, name, lang, encoded, prefix)
            yield self._step(f"binarize {name}.{lang}", outputs, work)

    def _numbers(self, name: str, lang: str, encoded: Path, prefix: Path) -> dict[str, Any]:
        dtype = indexed.number_type(self.notes["dictionaries"][lang])
        build = dictionary.Numbers(self._dictionaries[lang], dtype).build
        sentences = map_lines(build, read_lines(encoded), workers=self.job.workers)
        title = f"binarize {name}.{lang}"
        lines = indexed.write(_bar(sentences, title, self.size(name)), dtype, prefix)
        written = indexed.IndexedSet(prefix)
        tokens, unknown = int(written.sizes.sum()), written.count(dictionary.UNK)
        # as in the reports of fairseq-preprocess, ends of sentences count as tokens
        share = float(f"{100 * unknown / tokens:.3}")
        return {"lines": lines, "tokens": tokens, "percent unknown": share}


def _by_name(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _refuse_none(name: str, count: int, dropped: Mapping[str, int]) -> None:
    if not count:
        reasons = _by_name(dropped)
        raise UserError(f"no pair is left for {name} after cleaning (dropped: {reasons})")
