"""The steps every data set goes through, each run once and recorded in the journal."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.dataprep.corpus import Scrubber, write_pairs, zip_sides
from hyptrans.dataprep.journal import Journal
from hyptrans.dataprep.plan import Job, Plan, Tally
from hyptrans.dataprep.steps import learn, subwords
from hyptrans.dataprep.steps.binarize import binarize
from hyptrans.dataprep.steps.clean import CleanRule
from hyptrans.dataprep.steps.parallel import LineFunction, map_lines, run_apart
from hyptrans.dataprep.steps.seen import compare, take_inventory
from hyptrans.dataprep.steps.tokenize import TextSteps, moses_rules
from hyptrans.support.errors import UserError
from hyptrans.support.lines import read_lines, write_lines
from hyptrans.support.progress import bar, by_name
from hyptrans.support.provenance import versions

# the packages that shape the output
_TOOLS = ("fairseq", "sacremoses", "subword-nmt", "sentencepiece", "datasets", "tqdm")
# learning on less text than this (bytes) takes less memory than a process is worth
_WORTH_PROCESS = 20_000_000

# none for a step that is over in a moment
_bar = partial(bar, delay=2.0)

Sides = tuple[Path, Path]
"""The files of a set, source and target."""


class Stages:
    """Takes the sets from raw text to ``data-bin``, a folder per stage under ``journal.work``.

    Attributes:
        versions: of the packages that shape the output.
        tests: names of the test sets.
        result: the folder of what the user gets, put in place when all of it is there.
        binarized: in it, what fairseq trains on.
        model: in it, the subword model, None where there are no subwords.
        text: the files of each set as they are before subwords.
        encoded: its files of subwords.
        sizes: its number of pairs.
    """

    def __init__(self, plan: Plan, job: Job, journal: Journal) -> None:
        self.plan = plan
        self.job = job
        self.journal = journal
        self.versions = versions(*_TOOLS)
        self.tests = [name for name in plan.sets if name.startswith("test")]
        self.result = journal.work / "result"
        self.binarized = self.result / "data-bin"
        model = subwords.MODEL_NAMES.get(job.bpe)
        self.model = self.result / model if model else None
        self.text: dict[str, Sides] = {}
        self.encoded: dict[str, Sides] = {}
        self.sizes: dict[str, int] = {}

    def run(self) -> list[Path]:
        """Run all steps in order, and return the files of the result."""
        for name in self.plan.sets:
            self._read(name)
            self._tokenize(name)
        self._clean_text()
        self._learn()
        self._encode("train")
        self._inventory()
        for name in ("valid", *self.tests):
            self._encode(name)
        self._restore()
        self._binarize()
        # a run that was killed may have left others beside
        files = sorted(path for path in self.binarized.iterdir() if path.is_file())
        files += [path for name in self.tests for path in self._files("raw", name)]
        return [*files, *([self.model] if self.model else [])]

    def _files(self, stage: str, name: str) -> Sides:
        """The files of a set at a stage; the raw test sets are part of the result."""
        final = stage == "raw" and name in self.tests
        folder = (self.result if final else self.journal.work) / stage
        source, target = (folder / f"{name}.{lang}" for lang in self.job.languages)
        return source, target

    def _seen(self, what: str) -> list[Path]:
        """The files of what was seen in the training text, one for each language."""
        return [self.journal.work / "seen" / f"{what}.{lang}" for lang in self.job.languages]

    def _read(self, name: str) -> None:
        source = self.plan.sets[name]
        outputs = self.text[name] = self._files("raw", name)

        def work() -> dict[str, Any]:
            tally = Tally()
            scrub = Scrubber(raw_text=self.job.raw_text)
            pairs = ((scrub(one), scrub(other)) for one, other in source.read(tally))
            count = write_pairs(_bar(pairs, f"read {name}"), *outputs)
            if not count:
                raise UserError(f"the {name} set has no pair in {source.place}")
            return {
                "pairs": count,
                "from": dict(tally.parts),
                "lines left out": by_name(tally.left_out),
                "characters replaced": by_name(scrub.counts),
            }

        counts = self.journal.once(
            f"read {name}",
            work,
            settings={"raw text": self.job.raw_text, **source.settings},
            inputs=source.inputs,
            outputs=outputs,
        ).notes
        self.sizes[name] = counts["pairs"]

    def _tokenize(self, name: str) -> None:
        flags = self.plan.text.get(name)
        if not flags:
            return
        before, after = self.text[name], self._files("text", name)
        done = ", ".join(flag for flag, wanted in flags.items() if wanted)
        for side, lang in enumerate(self.job.languages):
            self._map(
                f"tokenize {name}.{lang}",
                TextSteps(lang, **flags).build,
                before[side],
                after[side],
                self.sizes[name],
                # sacremoses falls back to English without a word
                notes={"steps": done, "moses rules of": moses_rules(lang)},
            )
        self.text[name] = after

    def _map(
        self,
        step: str,
        build: Callable[[], LineFunction],
        before: Path,
        after: Path,
        size: int,
        notes: Mapping[str, Any],
        also: tuple[Path, ...] = (),
    ) -> None:
        def work() -> dict[str, Any]:
            lines = map_lines(build, read_lines(before), workers=self.job.workers)
            return {"lines": write_lines(_bar(lines, step, size), after), **notes}

        self.journal.once(
            step,
            work,
            settings={**notes, "versions": self.versions},
            inputs=[before, *also],
            outputs=[after],
        )

    def _pairs(self, name: str, files: Sides, title: str) -> Iterator[tuple[str, str]]:
        pairs = zip_sides(read_lines(files[0]), read_lines(files[1]), *files)
        return _bar(pairs, title, self.sizes[name])

    def _clean_text(self) -> None:
        """Drop training pairs by length and hold out every n-th of those kept."""
        names = ("train", "valid") if self.plan.held_out else ("train",)
        after = {name: self._files("clean", name) for name in names}
        rule, n = self.plan.clean_text, self.plan.held_out
        self._clean("clean train", rule, self.text["train"], after, n)
        self.text |= after

    def _clean(
        self,
        step: str,
        rule: CleanRule | None,
        before: Sides,
        after: Mapping[str, Sides],
        held_out: int = 0,
    ) -> None:
        """Drop pairs of the first set of ``after``; with ``held_out`` each n-th goes to valid."""
        name = next(iter(after))
        dropped: Counter[str] = Counter()

        def kept(title: str) -> Iterator[tuple[int, tuple[str, str]]]:
            dropped.clear()
            pairs = self._pairs(name, before, title)
            return enumerate(rule.keep(pairs, dropped) if rule else pairs, start=1)

        def work() -> dict[str, Any]:
            counts = {}
            if n := held_out:
                held = (pair for number, pair in kept("hold out") if number % n == 0)
                counts = {"valid": write_pairs(held, *after["valid"]), "held out every": n}
            rest = (pair for number, pair in kept(step) if not n or number % n)
            counts[name] = write_pairs(rest, *after[name])
            return {**counts, "dropped": by_name(dropped)}

        counts = self.journal.once(
            step,
            work,
            settings={"rule": dataclasses.asdict(rule) if rule else None, "held out": held_out},
            inputs=before,
            outputs=[path for files in after.values() for path in files],
        ).notes
        for each in after:
            self.sizes[each] = counts[each]
            if not counts[each]:
                raise UserError(
                    f"no pair is left for {each} after cleaning (dropped: {counts['dropped']})"
                )

    def _learn(self) -> None:
        texts = list(self.text["train"])
        model, job = self.model, self.job
        if model is None:
            return
        more: dict[str, Any] = {"adapts": job.size_adapts, "coverage": job.character_coverage}
        make = partial(learn.learn, job.bpe, texts, job.vocab_size, model, **more)

        def work() -> dict[str, Any]:
            small = sum(path.stat().st_size for path in texts) < _WORTH_PROCESS
            return {"kind": job.bpe, **(make() if small else run_apart(make))}

        self.journal.once(
            "learn subwords",
            work,
            settings={"kind": job.bpe, "size": job.vocab_size, "versions": self.versions, **more},
            inputs=texts,
            outputs=[model],
        )

    def _encode(self, name: str) -> None:
        after = self.encoded[name] = self._files("encoded", name)
        restricted = self.job.bpe == "sentencepiece" and name != "train"
        for side, lang in enumerate(self.job.languages):
            pieces = self._seen("pieces")[side] if restricted else None
            self._map(
                f"encode {name}.{lang}",
                subwords.Encoder(self.job.bpe, self.model, pieces).build,
                self.text[name][side],
                after[side],
                self.sizes[name],
                notes={} if self.model else {"subwords": "none, words by spaces"},
                also=tuple(path for path in (self.model, pieces) if path),
            )
        if (rule := self.plan.clean_subwords) and not name.startswith("test"):
            before, self.encoded[name] = after, self._files("final", name)
            step = f"clean {name} subwords"
            self._clean(step, rule, before, {name: self.encoded[name]})

    def _inventory(self) -> None:
        """Note the characters and pieces of the training text, and sentencepiece dictionaries."""
        texts = dict(zip(self.job.languages, self.text["train"], strict=True))
        encoded = dict(zip(self.job.languages, self.encoded["train"], strict=True))
        # of other subwords fairseq-preprocess builds the dictionaries, as in fairseq's scripts
        more = ["pieces", "dict"] if self.job.bpe == "sentencepiece" else []
        stages = ["characters", *more]
        outputs = [path for stage in stages for path in self._seen(stage)]
        joined = self.job.joined_dictionary
        # joined: what was seen on either side counts for both
        groups = [self.job.languages] if joined else [(lang,) for lang in self.job.languages]

        self.journal.once(
            "inventory",
            lambda: take_inventory(groups, texts, encoded, outputs),
            settings={"joined": joined, "stages": stages, "word start": True},
            inputs=[*texts.values(), *encoded.values()],
            outputs=outputs,
        )

    def _restore(self) -> None:
        """Check that the text of every test set comes back, and count what training never saw."""
        for name in self.tests:
            files = [*self.text[name], *self.encoded[name], *self._seen("characters")]

            def work(files: list[Path] = files) -> dict[str, Any]:
                return {
                    lang: compare(self.job.bpe, *files[side::2])
                    for side, lang in enumerate(self.job.languages)
                }

            counts = self.journal.once(
                f"restore {name}", work, settings={"kind": self.job.bpe}, inputs=files
            ).notes
            for lang, found in counts.items():
                if found["restored"] != found["lines"]:
                    sys.stderr.write(
                        f"warning: {found['lines'] - found['restored']} lines of {name}.{lang} "
                        "do not come back exactly from their subwords\n"
                    )

    def _binarize(self) -> None:
        encoded = {name: self.encoded[name] for name in ("train", "valid", *self.tests)}
        ready = self._seen("dict") if self.job.bpe == "sentencepiece" else []
        if self.job.joined_dictionary:
            ready = ready[:1]

        def work() -> dict[str, Any]:
            counts = binarize(
                prefixes={name: files[0].with_suffix("") for name, files in encoded.items()},
                languages=self.job.languages,
                folder=self.binarized,
                scratch=self.journal.work / "data-bin",
                joined=self.job.joined_dictionary,
                dictionaries=ready,
                workers=self.job.workers,
            )
            for name in encoded:
                for lang in self.job.languages:
                    found = counts.get(f"{name}.{lang}", {}).get("lines")
                    if found != self.sizes[name]:
                        raise UserError(
                            f"fairseq-preprocess saw {found} lines in {name}.{lang}, "
                            f"there are {self.sizes[name]}"
                        )
            return counts

        self.journal.once(
            "binarize",
            work,
            settings={"joined": self.job.joined_dictionary, "versions": self.versions},
            inputs=[*(path for files in encoded.values() for path in files), *ready],
            outputs=[self.binarized],
        )
