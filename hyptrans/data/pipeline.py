"""Carry out a command's plan: from pairs of lines to a folder that trainings read."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hyptrans.data import folder, manifest
from hyptrans.data.plan import Job, Plan
from hyptrans.data.stages import Stages
from hyptrans.data.summary import next_command, summary
from hyptrans.support import steps
from hyptrans.support.errors import UserError, one_line
from hyptrans.support.files import remove, sha256, write_json
from hyptrans.support.provenance import versions
from hyptrans.support.steps import Notes

# packages that influence the output
_TOOLS = ("numpy", "sacremoses", "subword-nmt", "sentencepiece", "datasets")

_KEPT = "kept"
"""File that marks a finished run whose intermediate texts are kept."""


def prepare(job: Job, inputs: Iterable[Path], make_plan: Callable[[], Plan]) -> None:
    """Prepare a data set in ``job.out``, or continue where an earlier run stopped.

    It writes ``data-bin/``, ``raw/`` (the references of the test sets), the subword model and,
    last of all, ``manifest.json``.

    Args:
        job: the shared options.
        inputs: the user's files, to be hashed.
        make_plan: makes the plan; called only if there is something to do.

    Raises:
        UserError: the input or the output folder cannot be used; the message says why.
    """
    paths = list(dict.fromkeys(inputs))
    folder.refuse_inputs(job.out, job.work, paths)
    described = manifest.describe_files(paths)
    hashes = [file["sha256"] for file in described.values()]
    made_from = {"options": list(job.options), "inputs": hashes}
    finished = manifest.load(job.out)
    mark = job.work / _KEPT
    kept = job.keep_intermediate or bool(finished and not job.overwrite and mark.exists())
    if finished and not job.overwrite and _is_whole(job, finished, made_from):
        if not kept and steps.is_kept_in(job.work):
            # a run was killed right after it wrote its manifest
            with suppress(UserError), steps.alone(job.work):
                remove(job.work)
        sys.stdout.write(f"{job.out} is finished already, nothing to do\n")
        return
    folder.refuse_others(job.out, job.work, finished)
    start = time.monotonic()
    plan = make_plan()
    found = versions(*_TOOLS)
    notes: dict[str, Notes] = {}
    stages = Stages(plan, job, {**made_from, "versions": found}, notes)
    new, begun = not job.out.exists(), not job.work.exists()
    with steps.alone(job.work):
        try:
            steps.follow(stages.steps(), job.work, notes)
        except UserError:
            # the input was refused before this or an earlier run finished a step
            if begun and not notes:
                remove(job.work)
                if new and not any(job.out.iterdir()):
                    job.out.rmdir()
            raise
        placed = folder.put_in_place(stages.files, stages.result, job.out)
        content = {
            "command": list(job.command),
            "made_from": made_from,
            "versions": found,
            "languages": list(job.languages),
            "inputs": described,
            "steps": [{"name": name, **noted} for name, noted in notes.items()],
            "outputs": manifest.describe_files(placed, job.out),
        }
        if kept:
            mark.touch()
        write_json(job.out / manifest.NAME, content)
        if not kept:
            remove(job.work)
    _warn_of_repeated(plan)
    sys.stdout.write(f"{summary(job, plan.sets, stages.size, notes)}\n")
    seconds = time.monotonic() - start
    sys.stdout.write(f"{job.out} is ready after {seconds:.0f} s; details are in {manifest.NAME}\n")
    sys.stdout.write(f"\ntrain on it, for example:\n{next_command(job)}\n")


def _is_whole(job: Job, finished: Mapping[str, Any], made_from: Mapping[str, Any]) -> bool:
    """Return whether the finished folder holds exactly what this command makes.

    Raises:
        UserError: it was made differently, or an output was changed.
    """
    if finished.get("made_from") != made_from:
        raise UserError(
            f"{job.out} is finished, with other options or input, or by another release; "
            "choose another --out, or --overwrite to replace it"
        )
    outputs = {job.out / name: file for name, file in finished["outputs"].items()}
    for path, file in outputs.items():
        if path.exists() and sha256(path) != file.get("sha256"):
            raise UserError(
                f"{path} was changed after it was made; "
                "choose another --out, or --overwrite to make it again"
            )
    missing = next((path for path in outputs if not path.exists()), None)
    if missing:
        sys.stderr.write(f"{one_line(str(missing))} is gone, so all is made again\n")
    return missing is None


def _warn_of_repeated(plan: Plan) -> None:
    """Warn of files in other sets that are also training text and so measure memorization."""
    hashes = {
        name: {path: sha256(path) for path in source.inputs if path.is_file()}
        for name, source in plan.sets.items()
    }
    training = set(hashes["train"].values())
    for name, found in hashes.items():
        for path in found if name != "train" else ():
            if found[path] in training:
                sys.stderr.write(
                    f"warning: {one_line(str(path))} of the {name} set is training text too, so "
                    "that the set measures what was learned by heart\n"
                )
