"""Bad input to the commands: one sentence, no traceback, nothing done."""

import argparse
import errno
import importlib
import linecache
import os
import pickle
import pty
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from hyptrans.inference import dictionary
from hyptrans_startup.commands import messages
from hyptrans_startup.commands.texts import check_text, longest, misaligned_text
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


def text_files(folder, **texts):
    for name, text in texts.items():
        (folder / f"t.{name}").write_bytes(text)
    return argparse.Namespace(
        source_lang="en", target_lang="de", only_source=False, align_suffix=None
    )


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        ({"en": b"a\nb\n", "de": b"a\r\nb"}, None),
        # fairseq ends a line at a carriage return too
        ({"en": b"a\nb\n", "de": b"a\rb\nc\n"}, "t.en has 2, .*t.de has 3"),
        ({"en": b"a\n", "de": b"\xff\n"}, "t.de is not UTF-8 text"),
        ({"en": b"a\n"}, "t.de does not exist"),
        ({"en": b"", "de": b"a\n"}, "t.en is empty"),
    ],
)
def test_text_is_counted_as_fairseq_reads_it(texts, error, tmp_path):
    args = text_files(tmp_path, **texts)
    if error is None:
        check_text(str(tmp_path / "t"), args)
    else:
        with pytest.raises(UserError, match=error):
            check_text(str(tmp_path / "t"), args)


def test_the_training_text_has_one_name_and_other_sets_may_have_several(tmp_path):
    ran = []
    for name in ("a,b", "c"):
        text_files(tmp_path, **{f"{name}.{side}": b"x\n" for side in ("en", "de")})
    train, both = str(tmp_path / "t.a,b"), f"{tmp_path / 't.c'},{tmp_path / 't.none'}"
    args = text_files(tmp_path)
    args.trainpref, args.validpref, args.testpref = train, None, None
    misaligned_text(ran.append, args)
    assert ran == [args]
    args.testpref = both
    with pytest.raises(UserError, match=r"t\.none\.en does not exist"):
        misaligned_text(ran.append, args)


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


def test_alignments_of_one_set_are_enough_and_of_none_are_missed(tmp_path):
    args = text_files(tmp_path, **{f"{x}.{side}": b"x\n" for x in "ab" for side in ("en", "de")})
    args.trainpref, args.validpref, args.testpref = str(tmp_path / "t.a"), None, None
    args.align_suffix = "align"
    with pytest.raises(UserError, match=r"t\.a\.align does not exist"):
        misaligned_text(lambda _: None, args)
    args.validpref = str(tmp_path / "t.b")
    (tmp_path / "t.b.align").write_text("0-0\n")
    misaligned_text(lambda _: None, args)


def test_training_text_that_is_to_measure_it_is_told(tmp_path, caplog):
    args = text_files(tmp_path, **{f"a.{side}": b"x\n" for side in ("en", "de")})
    args.trainpref, args.validpref, args.testpref = str(tmp_path / "t.a"), None, None
    misaligned_text(lambda _: None, args)
    assert not caplog.messages
    args.testpref = args.trainpref
    misaligned_text(lambda _: None, args)
    assert caplog.messages == [
        f"{args.trainpref} is training text, so the set measures what was learned"
    ]


def test_source_alone_needs_no_target(tmp_path):
    args = text_files(tmp_path, en=b"a\n")
    args.only_source = True
    check_text(str(tmp_path / "t"), args)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda index, data: data.unlink(), "train.en-de.en.bin is missing"),
        (lambda index, data: index.unlink(), "train.en-de.en.idx is missing"),
        (lambda index, data: os.truncate(index, 0), "train.en-de.en.idx is cut short"),
        (lambda index, data: os.truncate(index, 20), "train.en-de.en.idx is cut short"),
        (
            lambda index, data: os.truncate(index, index.stat().st_size - 1),
            "train.en-de.en.idx is cut short",
        ),
        (
            lambda index, data: os.truncate(data, data.stat().st_size - 1),
            "train.en-de.en.bin is cut short",
        ),
        (
            lambda index, data: index.write_bytes(
                index.read_bytes()[:17] + struct.pack("<BQ", 99, 1) + bytes(12)
            ),
            "unknown type of numbers, 99",
        ),
        (
            lambda index, data: index.write_bytes(index.read_bytes()[:18] + bytes(8)),
            "train.en-de.en.idx has no sentences",
        ),
    ],
)
def test_damage_of_a_data_folder_is_seen(harm, reason, data, tmp_path):
    from fairseq.data import indexed_dataset

    folder = shutil.copytree(data, tmp_path / "copy")
    path = str(folder / "train.en-de.en")
    assert indexed_dataset.dataset_exists(path, "mmap")
    harm(folder / "train.en-de.en.idx", folder / "train.en-de.en.bin")
    with pytest.raises(UserError, match=reason):
        indexed_dataset.dataset_exists(path, "mmap")
    with pytest.raises(UserError, match=reason):
        indexed_dataset.make_dataset(path, "mmap")


def test_older_format_of_data_is_left_to_fairseq(tmp_path):
    from fairseq.data import indexed_dataset

    builder = indexed_dataset.make_builder(str(tmp_path / "t.bin"), "lazy")
    builder.add_item(torch.tensor([1, 2, 3]))
    builder.finalize(str(tmp_path / "t.idx"))
    assert len(indexed_dataset.make_dataset(str(tmp_path / "t"), "lazy")) == 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "has no words"),
        ("word\n", "is no dictionary of fairseq"),
        ("a 1\na 2\n", "is no dictionary of fairseq"),
        ("a 1\n" * 1_000_001, "has more than 1,000,000 lines"),
        ("\r" * 1_000_001, "has more than 1,000,000 lines"),
        ("a" * (65 << 20), "has more than 1,000,000 lines or 67,108,864 bytes"),
        ("\u00c3\u00a4" * (33 << 20), "has more than 1,000,000 lines or 67,108,864 bytes"),
        ("\xff 1\n", "is not UTF-8 text"),
    ],
)
def test_damaged_dictionary_is_named(text, error, tmp_path):
    from fairseq.data import Dictionary

    path = tmp_path / "dict.en.txt"
    path.write_text(text, encoding="latin-1")
    for load in (Dictionary.load, lambda name: dictionary.Dictionary.load(Path(name))):
        with pytest.raises(UserError, match=f"dict.en.txt {error}"):
            load(str(path))


def test_nothing_of_a_file_that_is_no_dictionary_is_shown(tmp_path):
    from fairseq.data import Dictionary

    secret, path = tmp_path / "secret", tmp_path / "dict.en.txt"
    path.symlink_to(secret)
    for text in ("hunter2\n", "hunter2 1\nhunter2 1\n", "hunter2 hunter2\n"):
        secret.write_text(text)
        for load in (Dictionary.load, lambda name: dictionary.Dictionary.load(Path(name))):
            with pytest.raises(UserError, match=r"is no dictionary of fairseq") as caught:
                load(str(path))
            assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_regular_file_in_place_of_a_dictionary_is_read(kind, tmp_path):
    from fairseq.data import Dictionary

    path = tmp_path / "dict.en.txt"
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    for load in (Dictionary.load, lambda name: dictionary.Dictionary.load(Path(name))):
        with pytest.raises(UserError, match=r"dict.en.txt is no regular file"):
            load(str(path))


def load_set(folder, name):
    from fairseq.tasks.translation import TranslationConfig, TranslationTask

    task = TranslationTask.setup_task(TranslationConfig(data=str(folder), dataset_impl="mmap"))
    task.load_dataset(name)


def test_missing_set_is_named(data):
    with pytest.raises(UserError, match=r"no set 'test7' for en-de .*: test, train, valid"):
        load_set(data, "test7")


def test_sets_of_different_length_are_named(data, tmp_path):
    folder = shutil.copytree(data, tmp_path / "copy")
    for ending in ("bin", "idx"):
        shutil.copy(data / f"test.en-de.de.{ending}", folder / f"valid.en-de.de.{ending}")
    with pytest.raises(
        UserError, match=r"set 'valid': .* must contain the same number of examples"
    ):
        load_set(folder, "valid")


def test_missing_dictionary_is_named(tmp_path):
    from fairseq.data import Dictionary

    with pytest.raises(UserError, match=r"nosuch\.txt does not exist"):
        Dictionary.load(str(tmp_path / "nosuch.txt"))


def test_folder_without_languages_is_named(tmp_path):
    from fairseq.data import data_utils

    with pytest.raises(UserError, match="holds no pair of languages"):
        data_utils.infer_language_pair(str(tmp_path))


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


def test_longest_source_is_that_of_the_task_that_takes_least():
    assert longest({"de-en": (30, 20), "fr-en": (25, 40)}) == 25
    assert (longest((9, 5)), longest(7)) == (9, 7)


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
