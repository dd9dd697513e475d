"""From pairs of lines to a binarized data set: the steps that every command shares."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.dataprep import folder, manifest
from hyptrans.dataprep.journal import Journal, remove_kept, remove_left
from hyptrans.dataprep.plan import Job, Plan
from hyptrans.dataprep.stages import Stages
from hyptrans.dataprep.summary import next_command, summary
from hyptrans.support.errors import UserError, one_line

_PLACES = ("--train", "--valid", "--test", "--archive", "--raw", "--hub")
"""Options that name files and folders."""


def prepare(job: Job, inputs: Iterable[Path], make_plan: Callable[[Journal], Plan]) -> None:
    """Prepare a data set into ``job.out``, or go on where an earlier run stopped.

    Writes ``data-bin/``, ``raw/`` (the references of the test sets), the subword model and, last
    of all, ``manifest.json``.

    Args:
        job: the shared options.
        inputs: the files of the user, for their hashes.
        make_plan: called when the folder is ours; may unpack or download in steps of its own.

    Raises:
        UserError: the input or the output folder cannot be used; one sentence says why.
    """
    paths = dict.fromkeys(inputs)
    folder.refuse_inputs(job.out, paths)
    described = manifest.describe_files(paths)
    if _is_finished(job, described):
        if not job.keep_intermediate:
            # left behind by a run that was killed right after it wrote its manifest
            remove_left(job.out / folder.WORK)
        sys.stdout.write(f"{job.out} is finished already, nothing to do\n")
        return
    start = time.perf_counter()
    journal = Journal(job.out, job.out / folder.WORK)
    try:
        plan = make_plan(journal)
        stages = Stages(plan, job, journal)
        finished = folder.put_in_place(stages.run(), stages.result, job.out)
        content = {
            "command": list(job.command),
            "versions": stages.versions,
            "languages": list(job.languages),
            "inputs": described,
            "downloads": journal.downloads,
            "steps": [{"name": name, **found} for name, found in journal.notes.items()],
            "outputs": manifest.describe_files(finished, job.out),
        }
        manifest.write(job.out, content)
        if not job.keep_intermediate:
            remove_kept(job.out / folder.WORK)
    finally:
        journal.close()
    _tell_repeated(plan, described)
    sys.stdout.write(f"{summary(job, stages.sizes, journal.notes)}\n")
    seconds = time.perf_counter() - start
    sys.stdout.write(f"{job.out} is ready after {seconds:.0f} s; details are in {manifest.NAME}\n")
    sys.stdout.write(f"\ntrain on it, for example:\n{next_command(job)}\n")


def _tell_repeated(plan: Plan, inputs: Mapping[str, Any]) -> None:
    """Say which files of other sets are training text too, which measures what was learned."""
    hashes = {
        # a folder has all sets in it
        name: {
            inputs[str(x)]["sha256"]: x for x in source.inputs if x.is_file() and str(x) in inputs
        }
        for name, source in plan.sets.items()
    }
    for name in hashes.keys() - {"train"}:
        for same in hashes[name].keys() & hashes.get("train", {}).keys():
            sys.stderr.write(
                f"warning: {one_line(str(hashes[name][same]))} of the {name} set is training text "
                "too, so that the set measures what was learned by heart\n"
            )


def _is_finished(job: Job, inputs: dict[str, Any]) -> bool:
    """Tell whether the folder holds just what is asked for; touches nothing.

    Raises:
        UserError: it holds something else, and --overwrite was not given; or, also with
            --overwrite, what these commands did not write.
    """
    finished = manifest.load(job.out)
    if finished and not job.overwrite:
        made_from = _wherever(finished["command"], finished["inputs"])
        if made_from != _wherever(job.command, inputs):
            raise UserError(
                f"{job.out} is finished, with other options or input; "
                "choose another --out, or --overwrite to replace it"
            )
        missing = manifest.first_missing(job.out, finished)
        if missing is None:
            return True
        sys.stderr.write(f"{one_line(str(missing))} is gone, so all is made again\n")
    folder.refuse_others(job.out, finished)
    return False


def _wherever(command: Sequence[str], inputs: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    """A command, and names and hashes of its inputs, the same wherever these are."""
    places = {place for path in map(Path, inputs) for place in (path, *path.parents)}
    words, option = [], ""
    for word in command:
        option = word if word.startswith("--") else option
        # a folder may have the name of a language, or be a number
        words.append("" if option in _PLACES and Path(word) in places else word)
    return words, [(Path(path).name, file["sha256"]) for path, file in inputs.items()]
