"""Data sets with a name: the command knows their files, and takes them wherever they lie."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hyptrans.dataprep.commands.options import add_shared_arguments, make_job
from hyptrans.dataprep.journal import Journal
from hyptrans.dataprep.pipeline import prepare
from hyptrans.dataprep.plan import PairSource, Plan
from hyptrans.dataprep.sources import origin as sources
from hyptrans.dataprep.sources.markup import parallel_files

Files = Mapping[str, tuple[str, Sequence[tuple[str, str]]]]
"""Of each set the name of the reader, and names of files, source first."""


@dataclass(frozen=True)
class Named:
    """A data set with a name.

    Attributes:
        program: name that the manifest has for the command.
        languages: its default source and target; it has the other direction too.
        sizes: default vocabulary by kind of subwords.
        urls: what is downloaded where nothing else is said.
        files: its sets' files, for a source and a target language.
        validation: the set that the split ``validation`` of the hub's data set is.
        plan: what happens to its sets, of files or, if true, of the hub, unless the text stays raw.
    """

    program: str
    languages: tuple[str, str]
    sizes: Mapping[str, int]
    urls: Sequence[str]
    files: Callable[[tuple[str, str]], Files]
    validation: str
    plan: Callable[[Mapping[str, PairSource], bool], Plan]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that all data sets with a name have."""
        add_shared_arguments(parser, self.sizes, self.languages)
        sources.add_options(parser, self.urls)

    def prepare(self, args: argparse.Namespace, problems: Sequence[str] = ()) -> None:
        """Prepare the data set.

        Raises:
            UserError: all that is wrong with the options, with ``problems`` in one sentence.
        """
        wrong = [*problems, *self._languages(args)]
        origin = sources.check(args, self.urls, wrong)
        job = make_job(args, self.program, self.sizes, wrong)
        files = self.files(job.languages)
        names = [name for _, pairs in files.values() for pair in pairs for name in pair]

        def make_plan(journal: Journal) -> Plan:
            sets: dict[str, PairSource] = {}
            if origin.hub:
                splits = {"train": "train", "test": "test", self.validation: "validation"}
                found = origin.hub_splits(job.languages)
                sets |= {name: found[split] for name, split in splits.items() if split in found}
            else:
                paths = sources.locate(sources.gather(origin, self.urls, names, journal), names)
                for name, (reader, pairs) in files.items():
                    places = tuple((paths[source], paths[target]) for source, target in pairs)
                    sets[name] = parallel_files(reader, places)
            plan = self.plan(sets, bool(origin.hub))
            return replace(plan, text={}) if job.raw_text else plan

        prepare(job, origin.inputs(names), make_plan)

    def _languages(self, args: argparse.Namespace) -> list[str]:
        """Fill in the languages not given; only the default pair, in either direction, is known."""
        source, target = self.languages
        other = {source: target, target: source}
        args.source_lang = args.source_lang or other.get(args.target_lang, source)
        args.target_lang = args.target_lang or other.get(args.source_lang, target)
        if other.get(args.source_lang) == args.target_lang:
            return []
        return [
            f"unknown language pair {args.source_lang}-{args.target_lang}: this data set has "
            f"{source}-{target} and {target}-{source}"
        ]
