"""The steps that every data set goes through, from raw text to numbers."""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from hyptrans.data import dictionary, indexed, learn, subwords
from hyptrans.data.corpus import CleanRule, Pairs, read_pairs, scrubbed, write_pairs
from hyptrans.data.moses import TextSteps, moses_rules
from hyptrans.data.parallel import LineFunction, map_lines
from hyptrans.support.errors import UserError
from hyptrans.support.lines import read_lines, write_lines
from hyptrans.support.progress import bar
from hyptrans.support.steps import Notes, Step

# no bar for steps that end quickly
_bar = partial(bar, delay=2.0)

Sides = tuple[Path, Path]
"""The files of a set, source and target."""


@dataclass(frozen=True)
class Plan:
    """What happens to the sets of a data set.

    Attributes:
        text: the flags of ``TextSteps`` for each set; a set not named here keeps its raw text.
        clean_text: rule for the training text before subwords, None to keep all.
        held_out: every n-th training pair goes to ``valid``, 0 for none.
        clean_subwords: rule for training and validation pairs after subwords, None to keep all.
        sets: functions that yield a set's pairs, the same at every call, by name: ``train``,
            ``valid`` (unless held out), ``test`` ...
    """

    text: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    clean_text: CleanRule | None = None
    held_out: int = 0
    clean_subwords: CleanRule | None = None
    sets: Mapping[str, Callable[[], Pairs]] = field(default_factory=dict)


class Stages:
    """Takes the sets from raw text to ``data-bin``, with one folder per stage under ``work``.

    ``args`` are the shared options, as ``options.check`` leaves them, ``settings`` all that decides
    the outputs of the steps, and ``notes`` what earlier steps returned, by name.

    Attributes:
        result: the folder with the files for the user.
    """

    def __init__(
        self,
        plan: Plan,
        args: argparse.Namespace,
        work: Path,
        settings: Mapping[str, Any],
        notes: Mapping[str, Notes],
    ) -> None:
        self.plan, self.args, self.work, self.notes = plan, args, work, notes
        self.languages = (args.source_lang, args.target_lang)
        self.result = work / "result"
        self._step = partial(Step, settings=settings)
        self._tests = [name for name in plan.sets if name.startswith("test")]
        self._now = {name: self._files("raw", name) for name in plan.sets}
        """The files of each set after the last stage."""
        binary = self.result / "data-bin"
        self._dictionaries = {lang: binary / f"dict.{lang}.txt" for lang in self.languages}
        model = subwords.MODEL_NAMES.get(args.bpe)
        self._model = self.result / model if model else None

    def steps(self) -> Iterator[Step]:
        """Yield all steps in order."""
        for name in self.plan.sets:
            yield self._step(f"read {name}", self._now[name], partial(self._read, name))
            if flags := self.plan.text.get(name):
                yield from self._tokenize(name, flags)
        yield self._clean("clean train", "train", "clean", self.plan.clean_text, self.plan.held_out)
        text = self._now["train"]
        if self._model:
            how = (self.args.bpe, [*text], self.args.vocab_size, self._model)
            yield self._step("learn subwords", [self._model], partial(learn.learn, *how))
        yield from self._encode("train")
        write = partial(self._write_dictionaries, text, self._now["train"])
        yield self._step("dictionaries", [*self._dictionaries.values()], write)
        for name in ("valid", *self._tests):
            yield from self._encode(name)
        for name in ("train", "valid", *self._tests):
            yield from self._binarize(name)

    def _files(self, stage: str, name: str) -> Sides:
        """Return the files of a set at a stage; the raw test sets are part of the result."""
        final = stage == "raw" and name in self._tests
        folder = (self.result if final else self.work) / stage
        source, target = (folder / f"{name}.{lang}" for lang in self.languages)
        return source, target

    def _read(self, name: str) -> dict[str, Any]:
        scrub = partial(scrubbed, raw_text=self.args.raw_text)
        pairs = ((scrub(one), scrub(other)) for one, other in self.plan.sets[name]())
        count = write_pairs(_bar(pairs, f"read {name}"), *self._files("raw", name))
        if not count:
            raise UserError(f"the {name} set has no pair")
        return {"pairs": count}

    def _tokenize(self, name: str, flags: Mapping[str, bool]) -> Iterator[Step]:
        done = ", ".join(flag for flag, wanted in flags.items() if wanted)
        for lang, before, after in self._next("text", name):
            # sacremoses silently falls back to English
            facts = {"steps": done, "moses rules of": moses_rules(lang)}
            build = TextSteps(lang, **flags).build
            yield self._map(f"tokenize {name}.{lang}", build, before, after, facts)

    def _encode(self, name: str) -> Iterator[Step]:
        restricted = self.args.bpe == "sentencepiece" and name != "train"
        for lang, before, after in self._next("encoded", name):
            known = self._dictionaries[lang] if restricted else None
            build = subwords.Encoder(self.args.bpe, self._model, known).build
            yield self._map(f"encode {name}.{lang}", build, before, after, {})
        if (rule := self.plan.clean_subwords) and name not in self._tests:
            yield self._clean(f"clean {name} subwords", name, "final", rule)

    def _next(self, stage: str, name: str) -> Iterator[tuple[str, Path, Path]]:
        """Return each language with its file of a set before and after a stage."""
        before, self._now[name] = self._now[name], self._files(stage, name)
        return zip(self.languages, before, self._now[name], strict=True)

    def _map(
        self, title: str, build: Callable[[], LineFunction], before: Path, after: Path, facts: Notes
    ) -> Step:
        """Return a step that maps one file to another by lines; its notes include ``facts``."""

        def work() -> Notes:
            lines = map_lines(build, read_lines(before), workers=self.args.workers)
            return {"lines": write_lines(_bar(lines, title), after), **facts}

        return self._step(title, [after], work)

    def _clean(
        self, title: str, name: str, stage: str, rule: CleanRule | None, held_out: int = 0
    ) -> Step:
        """Return the step that drops pairs of a set and moves every n-th other one to ``valid``."""
        before = self._now[name]
        after = {one: self._files(stage, one) for one in (name, "valid")[: 1 + bool(held_out)]}
        self._now |= after

        def work() -> dict[str, Any]:
            counts: dict[str, Any] = {}
            for one, files in after.items():
                dropped = Counter[str]()
                pairs = _bar(read_pairs(*map(read_lines, before), *before), title)
                kept = enumerate(rule.keep(pairs, dropped) if rule else pairs, 1)
                moved = one != name
                chosen = (pair for n, pair in kept if not held_out or (n % held_out == 0) is moved)
                counts[one] = write_pairs(chosen, *files)
                counts["dropped"] = dict(sorted(dropped.items()))
                if not counts[one]:
                    raise UserError(
                        f"no pair is left for {one} after cleaning (dropped: {counts['dropped']})"
                    )
            return counts

        return self._step(title, [path for files in after.values() for path in files], work)

    def _write_dictionaries(self, text: Sides, encoded: Sides) -> dict[str, int]:
        """Write the dictionaries; with sentencepiece, add all characters to spell out pieces."""
        sizes = {}
        # joined: symbols of either side count for both
        for sides in [(0, 1)] if self.args.joined_dictionary else [(0,), (1,)]:
            used = dictionary.count_symbols(encoded[side] for side in sides)
            spelling: set[str] = set()
            if self.args.bpe == "sentencepiece":
                lines = (line for side in sides for line in read_lines(text[side]))
                # the spelling of a piece that begins a word includes its mark
                spelling = {subwords.WORD_START, *chain.from_iterable(lines)} - {" "}
            for lang in (self.languages[side] for side in sides):
                sizes[lang] = dictionary.write(used, self._dictionaries[lang], spelling)
        return sizes

    def _binarize(self, name: str) -> Iterator[Step]:
        pair = "-".join(self.languages)
        for lang, encoded in zip(self.languages, self._now[name], strict=True):
            prefix = self.result / "data-bin" / f"{name}.{pair}.{lang}"
            title = f"binarize {name}.{lang}"
            work = partial(self._write_numbers, title, lang, encoded, prefix)
            yield self._step(title, indexed.files(prefix), work)

    def _write_numbers(self, title: str, lang: str, encoded: Path, prefix: Path) -> dict[str, Any]:
        dtype = indexed.number_type(self.notes["dictionaries"][lang])
        build = partial(dictionary.encoder, self._dictionaries[lang], dtype)
        sentences = map_lines(build, read_lines(encoded), workers=self.args.workers)
        lines = indexed.write(_bar(sentences, title), dtype, prefix)
        written = indexed.IndexedSet(prefix)
        tokens, unknown = int(written.sizes.sum()), written.count(dictionary.UNK)
        # as in the reports of fairseq-preprocess, ends of sentences count as tokens
        share = float(f"{100 * unknown / tokens:.3}")
        return {"lines": lines, "tokens": tokens, "percent unknown": share}
