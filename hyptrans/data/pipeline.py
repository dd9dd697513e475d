"""Carry out a command's plan: from pairs of lines to a folder that trainings read."""

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hyptrans.data import manifest, subwords
from hyptrans.data.stages import Plan, Stages
from hyptrans.support import steps
from hyptrans.support.errors import UserError, one_line
from hyptrans.support.files import remove, sha256, write_json
from hyptrans.support.provenance import versions
from hyptrans.support.steps import Notes

# packages that influence the output
_TOOLS = ("numpy", "sacremoses", "subword-nmt", "sentencepiece", "datasets")
_OUTPUTS = ("data-bin", "raw", *subwords.MODEL_NAMES.values())
WORK = "intermediate"
"""Subfolder of the output folder to which steps write."""


def prepare(
    args: argparse.Namespace, inputs: Iterable[Path], make_plan: Callable[[], Plan]
) -> None:
    """Prepare a data set in ``args.out``, or continue where an earlier run stopped.

    It writes ``data-bin/``, ``raw/`` (the references of the test sets), the subword model and,
    last of all, ``manifest.json``.

    ``args`` are the shared options, as ``options.check`` leaves them, and ``inputs`` the user's
    files; ``make_plan`` is called only if there is something to do.

    Raises:
        UserError: the input or the output folder cannot be used; the message says why.
    """
    out: Path = args.out.absolute()
    work, paths = out / WORK, list(dict.fromkeys(inputs))
    described = {str(path): {"sha256": sha256(path)} for path in paths}
    options = [Path(word).name if Path(word).exists() else word for word in args.command]
    made_from = {"options": options, "inputs": [file["sha256"] for file in described.values()]}
    finished = manifest.load(out)
    if finished and not args.overwrite:
        _refuse_another(out, finished, made_from)
        if not finished.get("keeps intermediate", True) and steps.is_kept_in(work):
            # a kill came before this; a run that is at work there has the lock
            with suppress(UserError), steps.alone(work):
                remove(work)
        sys.stdout.write(f"{out} is finished already, nothing to do\n")
        return
    _refuse_others(out, finished)
    for path in paths:
        if path.resolve().is_relative_to(work.resolve()):
            raise UserError(f"{path} is input, and {work} will be replaced: choose another --out")
    plan, notes, found = make_plan(), dict[str, Notes](), versions(*_TOOLS)
    begun = not work.exists()
    stages = Stages(plan, args, work, {**made_from, "versions": found}, notes)
    with steps.alone(work):
        try:
            planned = list(stages.steps())
            steps.follow(planned, work, notes)
        except UserError:
            if begun and not notes:  # neither this run nor an earlier one finished a step
                remove(work)
                with suppress(OSError):
                    out.rmdir()
            raise
        outputs = [path for step in planned for path in step.outputs]
        content = {
            "command": args.command,
            "made_from": made_from,
            "versions": found,
            "languages": list(stages.languages),
            "inputs": described,
            "keeps intermediate": args.keep_intermediate,
            "steps": [{"name": name, **noted} for name, noted in notes.items()],
            "outputs": dict(_placed(outputs, stages.result, out)),
        }
        write_json(out / manifest.NAME, content)
        if not args.keep_intermediate:
            remove(work)
    sys.stdout.write("".join(f"{one_line(line)}\n" for line in _summary(args, notes)))
    data = os.path.relpath(out) if out.is_relative_to(Path.cwd()) else str(out)
    options = ["--arch", "hybonet_plus_iwslt_d64", "--out", f"runs/{out.name}"]
    train = shlex.join(["hyptrans", "train", data, *options])
    sys.stdout.write(f"{out} is ready; {manifest.NAME} has the details\n\ntrain on it:\n{train}\n")


def check_before_download(args: argparse.Namespace) -> None:
    """Check the output folder while the input, which tells what it should hold, is not there.

    Raises:
        UserError: it is finished, or would lose files that this command did not make.
    """
    out: Path = args.out.absolute()
    finished = manifest.load(out)
    if finished and not args.overwrite:
        raise UserError(f"{out} is finished; choose another --out, or --overwrite to replace it")
    _refuse_others(out, finished)


def _refuse_another(out: Path, finished: Mapping[str, Any], made_from: Mapping[str, Any]) -> None:
    """Refuse a finished folder that does not hold exactly what this command makes."""
    why = "with other options or input, or by another release"
    if finished.get("made_from") == made_from:
        outputs = {out / name: file.get("sha256") for name, file in finished["outputs"].items()}
        damaged = (path for path in outputs if not path.exists() or sha256(path) != outputs[path])
        other = next(damaged, None)
        if other is None:
            return
        why = f"but {other} was changed or removed"
    raise UserError(f"{out} is finished, {why}; choose another --out, or --overwrite to replace it")


def _refuse_others(out: Path, finished: Mapping[str, Any] | None) -> None:
    """Refuse to replace files that neither a finished nor a stopped run wrote."""
    work = out / WORK
    result, stopped = work / "result", steps.is_kept_in(work)
    known = {out / name for name in finished["outputs"]} if finished else set()
    known |= {out / path.relative_to(result) for path in result.rglob("*") if stopped}
    for place in (out / name for name in (*_OUTPUTS, *[WORK] * (not stopped))):
        for path in sorted([place, *place.rglob("*")]):
            if (path.is_symlink() or path.is_file()) and path not in known:
                raise UserError(
                    f"{path} was not made by this command, which would replace it; choose another "
                    "--out, or move it away"
                )


def _placed(
    outputs: Iterable[Path], result: Path, out: Path
) -> Iterator[tuple[str, dict[str, str]]]:
    """Replace an earlier run's files in ``out`` by a complete result, and yield name and hash.

    They also stay in the result, so that this can be repeated after a kill.
    """
    # the manifest goes last: it tells which of these files are those of an earlier run
    for name in (*_OUTPUTS, manifest.NAME):
        remove(out / name)
    for path in sorted(path for path in outputs if path.is_relative_to(result)):
        target = out / path.relative_to(result)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, target)
        yield target.relative_to(out).as_posix(), {"sha256": sha256(target)}


def _summary(args: argparse.Namespace, notes: Mapping[str, Notes]) -> Iterator[str]:
    """Yield what was dropped, sizes of subwords, dictionaries and sets, and anything unusual."""
    for title, noted in notes.items():
        kind, _, name = title.partition(" ")
        for why, count in noted.get("dropped", {}).items():
            yield f"{title}: dropped {count:,} ({why})"
        if kind == "tokenize" and not name.endswith(f".{noted['moses rules of']}"):
            rules = noted["moses rules of"]
            yield f"{title}: Moses has no rules for this language and uses those of {rules}"
        if title == "learn subwords":
            unit = "merges" if "merges" in noted else "pieces"
            few = noted[unit] < args.vocab_size
            less = f", as this text supports no {args.vocab_size:,}" if few else ""
            yield f"subwords: {noted[unit]:,} {unit} of {args.bpe}{less}"
            if (share := noted.get("character coverage", 1)) < 1:
                yield f"the most frequent characters, {100 * share:g} % of the text, are in pieces"
        if title == "dictionaries":
            sizes = ", ".join(f"{lang} {size:,}" for lang, size in noted.items())
            yield f"symbols of the dictionaries: {sizes}"
        if kind == "binarize":
            unknown = f"{noted['percent unknown']:g} % unknown"
            yield f"{name}: {noted['lines']:,} lines, {noted['tokens']:,} tokens, {unknown}"
