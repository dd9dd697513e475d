"""Bad input to the commands: one sentence, no traceback, nothing done."""

import errno
import importlib
import linecache
import os
import pickle
import pty
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import torch

from hyptrans_startup.commands import messages
from hyptrans_startup.errors import UserError
from hyptrans_startup.training.resuming import check_formulas
from tests.startup.conftest import TINY

TRAIN = ["fairseq-train", *TINY, "--save-dir=bad-ck", "--max-epoch=1"]
GENERATE = ["fairseq-generate", "bin", "--cpu", "--batch-size=8"]
PREPROCESS = ["fairseq-preprocess", "-s=en", "-t=de", "--destdir=bad-bin"]

# the command and what its last line must say
CASES = {
    "data folder is missing": (
        [*TRAIN, "nosuch"],
        "data folder nosuch does not exist; fairseq-preprocess writes one",
    ),
    "data folder has a cut index": (
        [*TRAIN, "cut-index"],
        "train.en-de.en.* is damaged or half written (train.en-de.en.idx is cut short)",
    ),
    "data folder has one side": (
        [*TRAIN, "one-side"],
        "data folder one-side has no target side (de) of the set 'valid'",
    ),
    "architecture is unknown": (
        [*TRAIN, "bin", "--arch=transformer_tinny"],
        "--arch transformer_tinny is not one of the",
    ),
    "width is no multiple of the heads": (
        [*TRAIN, "bin", "--encoder-embed-dim=30", "--encoder-attention-heads=4"],
        "embed_dim must be divisible by num_heads",
    ),
    "checkpoint is cut short": (
        [*GENERATE, "--path=cut.pt"],
        "checkpoint cut.pt is cut short or was not written by fairseq",
    ),
    "checkpoint runs code": (
        [*GENERATE, "--path=evil.pt"],
        f"checkpoint evil.pt is refused: loading it would call {os.system.__module__}.system",
    ),
    "checkpoint is of another architecture": (
        [*TRAIN, "bin", "--arch=transformer", "--restore-file=ck/checkpoint_last.pt"],
        "checkpoint ck/checkpoint_last.pt does not fit the model (no 'encoder.layers.2.",
    ),
    "checkpoint is of another vocabulary": (
        ["fairseq-generate", "other-words", "--cpu", "--path=ck/checkpoint_last.pt"],
        "does not fit the model (size mismatch for encoder.embed_tokens.weight",
    ),
    "text differs in its number of lines": (
        [*PREPROCESS, "--trainpref=train", "--validpref=valid,uneven"],
        "the sides differ in their number of lines: uneven.en has 9, uneven.de has 10",
    ),
    "text is empty": ([*PREPROCESS, "--trainpref=empty"], "empty.en is empty"),
    "dictionary would be overwritten": (
        [*PREPROCESS, "--trainpref=train", "--destdir=bin"],
        "bin/dict.en.txt is there already; give another --destdir",
    ),
    "system output is missing": (
        ["fairseq-score", "-s=nosuch", "-r=nosuch"],
        "System output file nosuch does not exist",
    ),
    "data folder of a hydra run is missing": (
        ["fairseq-hydra-train", "--config-dir=.", "--config-name=nodata", "hydra.run.dir=."],
        "nosuch/dict.txt does not exist",
    ),
}


class RunsCode:
    """Makes a file, ``ran``, when its pickle is loaded."""

    def __reduce__(self):
        return os.system, ("touch ran",)


@pytest.fixture(scope="module")
def outcomes(work, data, checkpoint, fork):
    """What each command of `CASES` ends with."""
    for name in ("cut-index", "one-side", "other-words"):
        shutil.copytree(data, work / name)
    os.truncate(work / "cut-index" / "train.en-de.en.idx", 100)
    for path in (work / "one-side").glob("valid.en-de.de.*"):
        path.unlink()
    with (work / "other-words" / "dict.en.txt").open("a") as dictionary:
        dictionary.write("zz 1\n")

    stored = checkpoint.read_bytes()
    (work / "cut.pt").write_bytes(stored[: len(stored) // 2])
    state = torch.load(checkpoint, weights_only=False)
    state["extra_state"]["note"] = RunsCode()
    torch.save(state, work / "evil.pt")

    lines = (work / "valid.en").read_text().splitlines(keepends=True)
    (work / "uneven.en").write_text("".join(lines[1:]))
    for name, source in {"uneven.de": "valid.de", "empty.de": "valid.de"}.items():
        shutil.copy(work / source, work / name)
    (work / "empty.en").touch()
    (work / "nodata.yaml").write_text(
        "# @package _group_\ncommon: {cpu: true}\ndataset: {max_tokens: 200}\n"
        "task: {_name: language_modeling, data: nosuch}\ncriterion: {_name: cross_entropy}\n"
        "optimization: {lr: [0.1]}\noptimizer: {_name: adam, adam_betas: '(0.9, 0.98)'}\n"
        "model: {_name: transformer_lm}\nlr_scheduler: {_name: fixed}\n"
    )
    return {name: fork(*command, cwd=work, check=False) for name, (command, _) in CASES.items()}


@pytest.mark.parametrize("case", CASES)
def test_command_answers_bad_input_in_one_sentence(case, outcomes, work):
    command, sentence = CASES[case]
    done = outcomes[case]
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"{command[0]}: error: ")
    assert sentence in last
    assert "Traceback" not in done.stdout + done.stderr


def test_code_in_a_checkpoint_does_not_run(outcomes, work):
    assert "refused" in outcomes["checkpoint runs code"].stderr
    assert not (work / "ran").exists()


def test_refused_text_leaves_no_data_folder(outcomes, work):
    assert outcomes["text is empty"].returncode == 1
    assert not (work / "bad-bin").exists()


def test_variable_brings_the_traceback_back(outcomes, run, work):
    command, _ = CASES["system output is missing"]
    told = outcomes["system output is missing"].stderr
    assert told.splitlines()[-1].endswith("(HYPTRANS_TRACEBACK=1 shows where this comes from)")
    shown = run(*command, cwd=work, check=False, HYPTRANS_TRACEBACK="1").stderr
    assert "Traceback (most recent call last)" in shown


def raised(module, error, line="raise error"):
    """Return `error` as raised by a module of that name."""
    code = compile(line, f"{module}'s file", "exec")
    linecache.cache[code.co_filename] = (len(line), None, [line], code.co_filename)
    try:
        exec(code, {"__name__": module, "error": error})
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    ("module", "error", "told"),
    [
        ("hyptrans.models.hybonet", ValueError("--dropout is 2"), True),
        ("hyptrans.support.extras", ModuleNotFoundError("needs conllu"), True),
        ("hyptrans.models.hybonet", KeyError("width"), False),
        ("fairseq.trainer", Exception("words for the user"), True),
        ("fairseq.trainer", AssertionError(), False),
        ("fairseq_cli.train", ValueError("--lang-pairs is required"), True),
        ("torch.nn", ValueError("a bug"), False),
        ("torch.nn", FileNotFoundError(2, "No such file", "x"), True),
        ("torch.nn", UserError("the words"), True),
    ],
)
def test_only_errors_of_the_user_lose_their_traceback(module, error, told):
    assert (messages.explain(raised(module, error)) is not None) == told


def test_what_fairseq_did_not_say_itself_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("1 / 0", "fairseq's file", "exec"), {"__name__": "fairseq.trainer"})
    assert messages.explain(caught.value) is None


def test_a_name_that_a_file_gave_is_shown_without_what_a_terminal_acts_on():
    name = "/tmp/\x1b]0;x\x07\nerror: other" + "a" * 9_000
    told = messages.explain(FileNotFoundError(errno.ENOENT, "No such file", name))
    assert told.startswith("/tmp/\ufffd]0;x\ufffd error: other")
    assert told.endswith("a: No such file")
    assert len(told) < 400


SHOWS = """
import logging, sys
from hyptrans.support.errors import run_command
from hyptrans_startup.commands.messages import one_sentence

def show():
    print("D-0\\t" + WORD)
    logging.warning(WORD)
    sys.stderr.write(chr(10) + chr(27) + "[A")
    raise KeyError(WORD)

WORD = "a\\x1b]0;x\\x07\\x1b[31mb"
if sys.argv[1] == "fairseq":
    one_sentence(show)
run_command(show)
"""


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("program", ["fairseq", "hyptrans"])
def test_a_terminal_is_shown_nothing_that_it_acts_on(program, terminal):
    ours, theirs = pty.openpty() if terminal else os.pipe()
    command = [sys.executable, "-c", SHOWS, program]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs):
        os.close(theirs)
    os.set_blocking(ours, False)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    # a file keeps what a program may want to read
    word = "a\ufffd]0;x\ufffdb" if terminal else "a\x1b]0;x\x07\x1b[31mb"
    assert f"D-0\t{word}" in shown
    assert f"WARNING:root:{word}" in shown
    assert "KeyError: " in shown
    # bars of progress go up a line
    assert shown.count("\x1b") == (1 if terminal else 5)
    assert "\n\x1b[A" in shown


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a file that torch writes"),
        (b"hello world", "not a file that torch writes"),
        (pickle.dumps(RunsCode()), "not a file that torch writes"),
        ({"model": {}}, "KeyError: 'best_loss'"),
    ],
)
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_file_that_is_no_checkpoint_is_named(content, reason, tmp_path):
    from fairseq import checkpoint_utils

    path = tmp_path / "x.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with pytest.raises(UserError, match=f"x.pt is cut short or was not written .*{reason}"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))


@pytest.mark.parametrize(
    ("stored", "now", "refused"),
    [
        ({"decoder_heads": 4}, {"decoder_heads": None}, True),
        ({"decoder_heads": None}, {"decoder_heads": 4}, True),
        ({"decoder_heads": None}, {"decoder_heads": 8}, False),
        ({"decoder_heads": None}, {"decoder_heads": None}, False),
        ({"encoder_heads": 4}, {"decoder_heads": 8}, True),
    ],
)
def test_heads_of_the_decoder_are_the_encoders_where_none_are_named(stored, now, refused):
    @dataclass
    class Config:
        encoder_heads: int = field(default=8, metadata={"in_formula": True})
        decoder_heads: int | None = field(default=None, metadata={"in_formula": True})

    class Model:
        pass

    setattr(Model, "__dataclass", Config)
    trainer = SimpleNamespace(
        get_model=Model, cfg=SimpleNamespace(model=SimpleNamespace(**{"encoder_heads": 8} | now))
    )
    state = {"cfg": {"model": {"encoder_heads": 8} | stored}}
    if not refused:
        check_formulas("a.pt", state, trainer)
        return
    with pytest.raises(UserError, match=r"was trained with --(en|de)coder-heads \w+ and not \w+:"):
        check_formulas("a.pt", state, trainer)


@pytest.mark.parametrize(
    ("error", "blamed"),
    [
        (TypeError("no such argument"), True),
        (MemoryError(), False),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), False),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), False),
    ],
    ids=["unusable", "memory", "CPU's memory", "GPU's memory"],
)
@pytest.mark.parametrize(("chosen", "unusual"), [("adadelta", True), ("adam", False)])
def test_a_choice_is_named_where_it_cannot_be_used_not_where_memory_ends(
    error, blamed, chosen, unusual, monkeypatch
):
    module = importlib.import_module(f"fairseq.optim.{chosen}")
    made = {"__name__": module.__name__, "error": error}
    exec(compile("def update(): raise error", module.__file__, "exec"), made)
    monkeypatch.setattr(sys, "argv", ["fairseq-train", "--optimizer", chosen])
    with pytest.raises(type(error)) as raised:
        made["update"]()
    # what fairseq writes where a training breaks is no epoch
    monkeypatch.setattr(messages.saving, "written", ["ck/crash.pt"])
    said = messages.explain(raised.value)
    assert (said is not None) is (blamed and unusual)
    monkeypatch.setattr(messages.saving, "written", ["ck/checkpoint1.pt", "ck/crash.pt"])
    assert messages.explain(raised.value) is None
    if said:
        assert said.startswith(f"--optimizer {chosen} cannot be used with what else is named")
