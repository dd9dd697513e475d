"""From pairs of lines to a binarised data set: the steps that every command shares."""

import sys
from typing import Any

from . import manifest, subwords
from .errors import DataPrepError
from .files import remove
from .journal import Journal
from .plan import Job, Plan
from .stages import Stages

_WORK = "intermediate"
_OUTPUTS = ("data-bin", "raw", *subwords.MODEL_NAMES.values())


def prepare(plan: Plan, job: Job) -> None:
    """Prepare a data set into ``job.out``, or go on where an earlier run stopped.

    Writes ``data-bin/``, ``raw/`` (the references of the test sets), the subword model and, last
    of all, ``manifest.json``.

    Raises:
        DataPrepError: the input or the output folder cannot be used; one sentence says why.
    """
    inputs = manifest.describe_files(
        dict.fromkeys(path for source in plan.sets.values() for path in source.inputs)
    )
    if not _claim(job, inputs):
        sys.stdout.write(f"{job.out} is finished already, nothing to do\n")
        return
    journal = Journal(job.out, job.out / _WORK)
    try:
        stages = Stages(plan, job, journal)
        stages.run()
        content = {
            "command": list(job.command),
            "versions": manifest.versions(),
            "languages": list(job.languages),
            "inputs": inputs,
            "steps": journal.steps,
            "outputs": manifest.describe_files(stages.finished_files(), job.out),
        }
        manifest.write(job.out, content)
        if not job.keep_intermediate:
            remove(job.out / _WORK)
    finally:
        journal.close()
    sys.stdout.write(f"{manifest.summary(content)}\n{journal.stopwatch.table()}\n")
    sys.stdout.write(f"{job.out}: data-bin and {manifest.NAME} are ready\n")


def _claim(job: Job, inputs: dict[str, Any]) -> bool:
    """Make sure that the folder is ours to write; False when it holds just what is asked for."""
    finished = manifest.load(job.out)
    present = [name for name in _OUTPUTS if (job.out / name).exists()]
    if finished and not job.overwrite:
        if finished["command"] == list(job.command) and finished["inputs"] == inputs:
            if not job.keep_intermediate:
                # a run that was killed after its manifest was written
                remove(job.out / _WORK)
            return False
        raise DataPrepError(
            f"{job.out} is finished, with other options or input; "
            "choose another --out, or --overwrite to replace it"
        )
    if present and not finished and not (job.out / _WORK).is_dir() and not job.overwrite:
        raise DataPrepError(
            f"{job.out / present[0]} was not made by this command; "
            "choose another --out, or --overwrite to replace it"
        )
    if job.overwrite and (finished or present):
        # the manifest goes first: without it the folder does not count as finished
        for name in (manifest.NAME, *_OUTPUTS):
            remove(job.out / name)
    return True
