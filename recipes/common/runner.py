"""Runs a recipe's commands, shows each as a user would type it, and reuses what is finished."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import remove, sha256, take_lock
from hyptrans.support.steps import Done, Record, digest, recorded
from recipes.common import results
from recipes.common.steps import (
    Step,
    executed_command,
    identity,
    recorded_command,
    shown_command,
    thread_limits,
)

_OF_COMMAND = re.compile(r"^([\w.-]+: )?error: ")


class Runner:
    """Runs steps under one folder; what an earlier run finished with the same command is kept.

    A finished step is recorded with its command, the ids of the steps before it and hashes of its
    inputs, so a step is run again when its command, an input or what a step before it wrote has
    changed. Changes of the code are not seen: ``overwrite`` runs everything again.
    """

    def __init__(self, out: Path, *, overwrite: bool = False) -> None:
        self.out = out
        self.commands: list[str] = []
        self.notes: dict[str, Mapping[str, Any]] = {}
        """By step, what was noted when it was executed: seconds, threads, surroundings."""
        self._overwrite = overwrite
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = threading.Event()
        self._start = time.monotonic()

    @property
    def seconds(self) -> dict[str, float | None]:
        """By step; None of one that was resumed, as its first part is not known."""
        return {name: notes["seconds"] for name, notes in self.notes.items()}

    def log(self, step: Step) -> Path:
        """Where the output of a step's command is."""
        return self.out / "logs" / f"{step.name}.log"

    def say(self, text: str) -> None:
        """Print one line with the time since the start."""
        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        with self._lock:
            print(f"[{minutes}:{seconds:02d}] {text}", flush=True)

    def run(self, step: Step) -> None:
        """Run a step unless it is finished.

        Raises:
            UserError: the command failed, and the message names its log; or its outputs would take
                the place of what is not theirs to replace.
        """
        with self._lock:
            self.commands.append(recorded_command(step, self.out))
        after = [recorded(self._record(before)) for before in step.after]
        made_from: dict[str, Any] = {
            "command": identity(step, self.out),
            "after": [done.id if done else None for done in after],
            "inputs": [] if step.keeps_account else [sha256(path) for path in step.inputs],
        }
        record = Record(self._record(step), made_from, step.outputs)
        earlier = self._earlier(record)
        if earlier and not step.is_to_be_asked:
            self._reuse(step, earlier)
            return
        if not earlier:
            self._check_outputs(step)
        # until it is noted: outputs that nobody has noted are removed by whoever comes next
        with self._alone(step) as lock:
            # another run may have finished it in between
            earlier = self._earlier(record)
            if not earlier:
                self._make(step, record, made_from, lock)
                return
            if step.is_to_be_asked:
                self._execute(step, made_from, lock)
            self._reuse(step, earlier)

    def _earlier(self, record: Record) -> Done | None:
        return None if self._overwrite else record.earlier()

    def _reuse(self, step: Step, earlier: Done) -> None:
        self.notes[step.name] = earlier.notes
        self.say(f"{step.name}: reused from an earlier run of\n$ {shown_command(step)}")

    def _make(self, step: Step, record: Record, made_from: Mapping[str, Any], lock: int) -> None:
        self.say(f"{step.name}:\n$ {shown_command(step)}")
        start = time.monotonic()
        notes = {"threads": step.threads, "surroundings": results.surroundings()}
        # a training made again is another one, whatever it writes
        by_contents = step.outputs and not step.precious
        made = record.make(
            lambda: {"seconds": self._execute(step, made_from, lock), **notes},
            name=partial(_contents, step) if by_contents else None,
        )
        self.notes[step.name] = made.notes
        self.say(f"{step.name}: done in {time.monotonic() - start:.0f} s")

    def chains(self, chains: Sequence[Sequence[Step]], *, jobs: int) -> None:
        """Run chains of steps, ``jobs`` of them at a time.

        Raises:
            UserError: a command failed; the others are stopped.
        """
        pool = ThreadPoolExecutor(jobs)
        futures = [pool.submit(self._chain, chain) for chain in chains]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._stop()
            raise
        finally:
            pool.shutdown()

    def _chain(self, chain: Sequence[Step]) -> None:
        for step in chain:
            if self._stopped.is_set():
                return
            self.run(step)

    def _record(self, step: Step) -> Path:
        return self.out / "logs" / f"{step.name}.done"

    def _check_outputs(self, step: Step) -> None:
        """Refuse to replace what was not made here, or took too long to be lost."""
        there = next((path for path in step.outputs if path.exists()), None)
        if self._overwrite or there is None:
            return
        done, log = self._record(step), self.log(step)
        if not any(path.exists() for path in (done, log, _begun(log))):
            raise UserError(f"{there} was not made here: move it away, or choose another --out")
        if (step.precious or step.keeps_account) and done.exists():
            raise UserError(
                f"{there} is finished, and was made by another command or of other data: move it "
                "away, or choose another --out"
            )

    @contextmanager
    def _alone(self, step: Step) -> Iterator[int]:
        """Keep other runs from a step; its process inherits the lock, and may outlive this one.

        Raises:
            UserError: another run, or a process that one left behind, is at work on it.
        """
        log = self.log(step)
        log.parent.mkdir(parents=True, exist_ok=True)
        lock = take_lock(log.with_suffix(".lock"), log)
        try:
            yield lock
        finally:
            os.close(lock)

    def _execute(self, step: Step, made_from: Mapping[str, Any], lock: int) -> float | None:
        start = time.monotonic()
        log = self.log(step)
        resumed = self._clear(step, made_from)
        if step.keeps_account and self._overwrite:
            step = replace(step, command=[*step.command, "--overwrite"])
        self._follow(step, log, lock)
        missing = [str(path) for path in step.outputs if not path.exists()]
        if missing:
            raise UserError(f"{step.name} ended without writing {missing[0]}; see {log}")
        return None if resumed else round(time.monotonic() - start, 1)

    def _clear(self, step: Step, made_from: Mapping[str, Any]) -> bool:
        """Remove what an earlier run left, but what this command itself was stopped in.

        Returns:
            Whether it was.
        """
        begun = Record(_begun(self.log(step)), made_from, [])
        if step.resumes and not self._overwrite and begun.earlier():
            return True

        def clear() -> None:
            work = step.work if self._overwrite else ()
            for path in (*(() if step.keeps_account else step.outputs), *work, self.log(step)):
                remove(path)

        begun.make(clear)
        return False

    def _follow(self, step: Step, log: Path, lock: int) -> None:
        """Run a step's command to its end and write down what it says, line by line."""
        with (
            self._process(step, lock) as process,
            open(log, "a", encoding="utf-8", buffering=1) as file,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                file.write(line)
                if shown := step.progress(line):
                    self.say(f"{step.name}: {shown}")
        if process.returncode:
            last = _last_line(log)
            raise UserError(f"{step.name} failed: {last} (all of its output: {log})")

    @contextmanager
    def _process(self, step: Step, lock: int) -> Iterator[subprocess.Popen[str]]:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **thread_limits(step)}
        with subprocess.Popen(
            executed_command(step),
            env=environment,
            pass_fds=[lock],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as process:
            self._running.add(process)
            try:
                if self._stopped.is_set():
                    process.terminate()
                yield process
            except BaseException:
                process.terminate()
                raise
            finally:
                self._running.discard(process)

    def _stop(self) -> None:
        self._stopped.set()
        for process in list(self._running):
            process.terminate()


def _begun(log: Path) -> Path:
    """What tells which command a step was begun with."""
    return log.with_suffix(".begun")


def _contents(step: Step) -> str:
    """What the outputs of a step hold: the same, made again, are the same to what follows."""
    return digest({"outputs": [sha256(path) for path in step.outputs]})


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
    # what a command says of itself is said of the step already
    return _OF_COMMAND.sub("", lines[-1].strip()) if lines else "it wrote nothing"
