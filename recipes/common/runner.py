"""Commands as steps: shown as a user would type them, several at a time, with a log each."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import remove, sha256, take_lock
from hyptrans.support.records import Record, Steps, recorded
from recipes.common import results
from recipes.common.steps import Step, executed_command, identity, portable_command, shown_command

_DONE, _LOCK = ".done", ".lock"
"""Endings of what is beside the log of a step."""
_OF_COMMAND = re.compile(r"^([\w.-]+: )?error: ")


class Runner(Steps):
    """Steps that are commands; what an earlier run finished with the same command is kept.

    A step is made from its command, the ids of the steps before it and the hashes of its inputs, so
    it is run again when its command, an input or what a step before it wrote has changed. Changes
    of the code are not seen: ``overwrite`` runs everything again.
    """

    def __init__(self, out: Path, *, overwrite: bool = False) -> None:
        super().__init__(out, out / "logs", ending=_DONE, overwrite=overwrite)
        self.commands: list[str] = []
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = threading.Event()
        self._start = time.monotonic()

    def log(self, name: str) -> Path:
        """Where the output of a step's command is."""
        return self._beside(name, ".log")

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
            self.commands.append(portable_command(step, self.out))
        after = [recorded(self._beside(name, _DONE)) for name in step.after]
        made_from: dict[str, Any] = {
            "command": identity(step, self.out),
            "after": [done.id if done else None for done in after],
            "inputs": [] if step.keeps_account else [sha256(path) for path in step.inputs],
        }
        # a training made again is another one, whatever it writes
        record = self.record(step.name, made_from, step.outputs, unique=step.precious)
        earlier = record.earlier()
        if not earlier:
            self._check_outputs(step)
        if not earlier or step.is_to_be_asked:
            # until it is noted: outputs that nobody has noted are removed by whoever comes next
            with self._alone(step) as lock:
                # another run may have finished it in between
                earlier = record.earlier()
                if not earlier:
                    self._make(step, record, lock)
                    return
                if step.is_to_be_asked:
                    self._execute(step, lock)
        self.note(step.name, earlier)
        self.say(f"{step.name}: reused from an earlier run of\n$ {shown_command(step)}")

    def _make(self, step: Step, record: Record, lock: int) -> None:
        self.say(f"{step.name}:\n$ {shown_command(step)}")
        start = time.monotonic()
        notes = {"threads": step.threads, "surroundings": results.surroundings()}

        def run() -> dict[str, Any]:
            self._execute(step, lock)
            return notes

        done = record.make(run, clear=lambda: self._clear(step), resumes=step.resumes)
        self.note(step.name, done)
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

    def _beside(self, name: str, ending: str) -> Path:
        return self.out / "logs" / f"{name}{ending}"

    def _check_outputs(self, step: Step) -> None:
        """Refuse to replace what was not made here, or took too long to be lost."""
        there = next((path for path in step.outputs if path.exists()), None)
        if self._overwrite or there is None:
            return
        finished = self._beside(step.name, _DONE).exists()
        if not finished and not self._beside(step.name, _LOCK).exists():
            raise UserError(f"{there} was not made here: move it away, or choose another --out")
        if finished and (step.precious or step.keeps_account):
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
        log = self.log(step.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        lock = take_lock(self._beside(step.name, _LOCK), log)
        try:
            yield lock
        finally:
            os.close(lock)

    def _clear(self, step: Step) -> None:
        """Remove what an earlier run left; what it made on the way only where all is made again."""
        outputs = () if step.keeps_account else step.outputs
        for path in (*outputs, *(step.work if self._overwrite else ()), self.log(step.name)):
            remove(path)

    def _execute(self, step: Step, lock: int) -> None:
        if step.keeps_account and self._overwrite:
            step = replace(step, command=[*step.command, "--overwrite"])
        self._follow(step, lock)
        missing = [str(path) for path in step.outputs if not path.exists()]
        if missing:
            log = self.log(step.name)
            raise UserError(f"{step.name} ended without writing {missing[0]}; see {log}")

    def _follow(self, step: Step, lock: int) -> None:
        """Run a step's command to its end and write down what it says, line by line."""
        log = self.log(step.name)
        process = subprocess.Popen(
            executed_command(step),
            env={**os.environ, "PYTHONUNBUFFERED": "1", **step.limits},
            pass_fds=[lock],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        with process, open(log, "a", encoding="utf-8", buffering=1) as file:
            self._running.add(process)
            try:
                if self._stopped.is_set():
                    process.terminate()
                assert process.stdout is not None
                for line in process.stdout:
                    file.write(line)
                    if shown := step.progress(line):
                        self.say(f"{step.name}: {shown}")
            except BaseException:
                process.terminate()
                raise
            finally:
                self._running.discard(process)
        if process.returncode:
            last = _last_line(log)
            raise UserError(f"{step.name} failed: {last} (all of its output: {log})")

    def _stop(self) -> None:
        self._stopped.set()
        for process in list(self._running):
            process.terminate()


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
    # what a command says of itself is said of the step already
    return _OF_COMMAND.sub("", lines[-1].strip()) if lines else "it wrote nothing"
