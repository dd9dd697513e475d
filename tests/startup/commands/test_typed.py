"""What a user types wrong: one sentence, or what was meant."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from hyptrans_startup.commands import messages, texts, typed
from hyptrans_startup.errors import UserError
from tests import interrupts
from tests.startup.conftest import TINY

TRAIN = ["fairseq-train", *TINY, "--save-dir=bad-ck", "--max-epoch=1", "bin"]
LAST = "--path=ck/checkpoint_last.pt"
HYDRA = ["fairseq-hydra-train", "hydra.run.dir=.", "model=hybonet_tiny"]
WORDS = 1100
"""More than the model takes."""

# the command and what its last line must say
CASES = {
    "flag is mistyped": (
        [*TRAIN, "--dropuot=0.3"],
        "there is no flag --dropuot (similar: --dropout",
    ),
    "architecture is missing": (["fairseq-train", "bin"], "--arch NAME is missing; --help lists"),
    "data folder is missing": (
        ["fairseq-train", "--arch=transformer_tiny"],
        "the following arguments are required: data (--help lists all flags)",
    ),
    "half precision is asked of a CPU": ([*TRAIN, "--fp16"], "--fp16 needs a GPU, and none is"),
    "checkpoint to validate is missing": (
        ["fairseq-validate", "bin", "--cpu"],
        "--path CHECKPOINT is missing",
    ),
    "task of a checkpoint is unknown": (
        ["fairseq-validate", "bin", "--path=task.pt", "--max-tokens=200", "--cpu"],
        "checkpoint task.pt is refused: its task nosuch is not known here: name its plug-in",
    ),
    "criterion of a checkpoint is unknown": (
        ["fairseq-validate", "bin", "--path=criterion.pt", "--max-tokens=200", "--cpu"],
        "checkpoint criterion.pt is refused: its criterion nosuch is not known here: name its plug",
    ),
    "pieces have no model": (
        ["fairseq-generate", "bin", LAST, "--cpu", "--bpe=sentencepiece"],
        "--sentencepiece-model is missing",
    ),
    "model of the pieces is missing": (
        ["fairseq-interactive", "bin", LAST, "--bpe=sentencepiece", "--sentencepiece-model=nosuch"],
        "file nosuch not found",
    ),
    "model translates": (
        ["fairseq-eval-lm", "bin", LAST, "--cpu"],
        "checkpoint ck/checkpoint_last.pt is of a model that translates, and fairseq-eval-lm is",
    ),
    "model of a plugin that is not named": (
        HYDRA,
        "model=hybonet_tiny is not known, similar names: ",
    ),
    "weights are not finite": (
        ["fairseq-generate", "bin", "--path=nan.pt", "--cpu"],
        "no translation has a score that is a number: the weights are damaged",
    ),
    "input is not UTF-8": (
        ["fairseq-interactive", "bin", LAST, "--cpu", "--input=latin1"],
        "the input is not UTF-8 text after line ",
    ),
}
WORKING = {
    "validate": ["fairseq-validate", "bin", LAST, "--max-tokens=200", "--cpu"],
    "interactive": ["fairseq-interactive", "bin", LAST, "--cpu", "--input=lines"],
    "hydra": [
        *HYDRA,
        "common.user_dir=hyptrans",
        "common.cpu=true",
        "task=translation",
        "task.data=BIN",
        "criterion=cross_entropy",
        "optimizer=adam",
        "lr_scheduler=fixed",
        "optimization.lr=[0.001]",
        "optimization.max_update=1",
        "dataset.max_tokens=200",
        "checkpoint.no_save=true",
    ],
}


@pytest.fixture(scope="module")
def outcomes(work, data, checkpoint, fork):
    """What every command ends with."""
    (work / "lines").write_text(f"a b\n\n{'a ' * WORDS}\nc d\n")
    (work / "latin1").write_bytes("a b\nc\xe4\n".encode("latin-1"))
    for part in ("task", "criterion"):
        stored = torch.load(checkpoint, weights_only=False)
        stored["cfg"][part]["_name"] = "nosuch"
        torch.save(stored, work / f"{part}.pt")
    stored = torch.load(checkpoint, weights_only=False)
    stored["model"] = {name: torch.full_like(x, torch.nan) for name, x in stored["model"].items()}
    torch.save(stored, work / "nan.pt")
    every = {**{name: command for name, (command, _) in CASES.items()}, **WORKING}
    return {
        name: fork(*(word.replace("BIN", str(data)) for word in words), cwd=work, check=False)
        for name, words in every.items()
    }


@pytest.mark.parametrize("case", CASES)
def test_command_answers_in_one_sentence(case, outcomes):
    command, sentence = CASES[case]
    done = outcomes[case]
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"{command[0]}: error: ")
    assert sentence in last
    assert "Traceback" not in done.stdout + done.stderr
    assert "usage:" not in done.stdout + done.stderr


def test_validation_takes_the_task_of_the_checkpoint(outcomes):
    done = outcomes["validate"]
    assert done.returncode == 0, done.stderr
    assert re.search(r"valid on 'valid' subset \| loss \d+\.\d+", done.stdout)


def test_interactive_answers_an_empty_line_and_leaves_out_one_that_is_too_long(outcomes):
    done = outcomes["interactive"]
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^S-(\d+)\t(.*)$", done.stdout, re.MULTILINE) == [
        ("0", "a b"),
        ("1", ""),
        ("3", "c d"),
    ]
    translations = dict(re.findall(r"^D-(\d+)\t\S+\t(.*)$", done.stdout, re.MULTILINE))
    assert list(translations) == ["0", "1", "3"]
    assert translations["1"] == ""
    left_out = f"line 3 is left out: it has {WORDS + 1} tokens, and the model takes 1024"
    assert left_out in done.stdout + done.stderr


def test_hydra_trains_a_model_of_the_plugin(outcomes):
    done = outcomes["hydra"]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_ctrl_c_says_what_is_saved_and_how_to_go_on(data, work, run):
    command = [Path(sys.executable).parent / "fairseq-train", data, *TINY, "--save-dir=stopped"]
    process = subprocess.Popen(
        [*map(str, command), "--max-epoch=100000", "--no-epoch-checkpoints"],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=interrupts.heed,
    )
    last = work / "stopped" / "checkpoint_last.pt"
    while not last.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    assert "Traceback" not in output + errors
    assert re.fullmatch(
        "fairseq-train: stopped; stopped/checkpoint_(last|best).pt is saved, and the same command "
        "goes on from there",
        errors.splitlines()[-1],
    )


def test_stop_before_the_first_checkpoint_says_so(monkeypatch):

    monkeypatch.setattr(messages.saving, "written", [])
    assert "before this run saved a checkpoint" in messages.when_stopped("fairseq-train")
    assert messages.when_stopped("fairseq-score") == "stopped"


def test_stop_where_no_last_checkpoint_is_written_names_the_way_on(monkeypatch):
    written = ["a/checkpoint_last.pt", "a/checkpoint_1_50.pt"]
    monkeypatch.setattr(messages.saving, "written", written)
    assert messages.when_stopped("fairseq-train") == (
        "stopped; a/checkpoint_last.pt is saved, and the same command goes on from there"
    )
    monkeypatch.setattr(messages.saving, "written", written[1:])
    assert messages.when_stopped("fairseq-train") == (
        "stopped; a/checkpoint_1_50.pt is saved, --restore-file newest goes on from there"
    )


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            "unrecognized arguments: --dropuot 0.3 x",
            "there is no flag --dropuot (similar: --dropout); --help lists all",
        ),
        (
            "unrecognized arguments: --dropuot=1 --zzz",
            "there is no flag --dropuot (similar: --dropout), --zzz; --help lists all",
        ),
        ("unrecognized arguments: x", "there is no flag x; --help lists all"),
        ("argument --lr: bad", "argument --lr: bad (--help lists all flags)"),
    ],
)
def test_similar_flags_are_named(message, sentence):
    assert typed.mistyped(message, ["--dropout", "--lr"]) == sentence


def test_empty_lines_stand_alone_and_in_order():
    assert list(texts.runs(["", "a", "b", "", "", "c"])) == [[""], ["a", "b"], [""], [""], ["c"]]
    assert list(texts.runs([])) == []


def test_a_parser_of_validation_is_made_without_a_command_line(monkeypatch, tmp_path):
    from fairseq import options

    monkeypatch.setattr(sys, "argv", ["program", "--its-own=flag"])
    parser = options.get_validation_parser()
    # the words of a call, not those of the process
    words = [str(tmp_path), "--path=nosuch"]
    assert options.parse_args_and_arch(parser, words).task == "translation"
    with pytest.raises(UserError, match="--path CHECKPOINT is missing"):
        options.parse_args_and_arch(options.get_validation_parser(), words[:1])
