"""``hyptrans probe``: what goes wrong, and its help."""

import subprocess
import sys

import pytest
import torch

from probing.commands.cli import PROGRAM, main
from probing.probes.metrics import METRICS
from probing.report.data import ModelResult
from probing.report.results import markdown, table
from tests.probing.commands.runs import error_of, run_words


def test_a_file_as_out_is_refused(made, tmp_path, capsys):
    out = tmp_path / "out"
    out.write_text("mine")
    error = error_of(capsys, run_words(made, out))
    assert error == f"error: --out {out} is a file, a folder is needed: name another"
    assert out.read_text() == "mine"


def test_an_encoder_must_be_named(made, tmp_path, capsys):
    assert "no encoder is named" in error_of(capsys, run_words(made, tmp_path, models=[]))
    assert "--hf" in error_of(capsys, run_words(made, tmp_path, "--hf", "/none", models=[]))


def test_broken_trees_end_in_one_sentence_before_any_work(made, tmp_path, capsys):
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\ta\t_\tX\t_\t_\t2\t_\t_\t_\n2\tb\t_\tX\t_\t_\t1\t_\t_\t_\n\n")
    words = run_words(made, tmp_path / "out")
    words[words.index("--test") + 1] = str(broken)
    error = error_of(capsys, words)
    assert error.startswith(f"error: {broken}, line 1: the tree has no root")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("part", ["train", "dev"])
def test_trees_with_nothing_to_learn_are_refused_before_any_work(made, tmp_path, capsys, part):
    short = tmp_path / "short.conllu"
    short.write_text("1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n\n" * 3)
    words = run_words(made, tmp_path / "out")
    words[words.index(f"--{part}") + 1] = str(short)
    assert "short.conllu has only sentences of one word" in error_of(capsys, words)
    assert not (tmp_path / "out").exists()


def test_wrong_options_are_told_in_one_sentence(made, tmp_path, capsys):
    def error(*extra):
        return error_of(capsys, run_words(made, tmp_path / "out", *extra))

    assert "--names has 1 values for 2 encoders" in error("--names", "one")
    assert "--names must be letters" in error("--names", "a", "A")
    assert "--names must be letters" in error("--names", "linear chain", "b")
    assert "--names must be letters" in error("--names", "..", "b")
    data = [word for i in range(2) for word in ("--data", str(made / "data"))]
    assert "--data has 3 values for 2" in error(*data)
    assert "--steps 0 (at least 1), --lr -1 (above 0)" in error("--steps", "0", "--lr", "-1")
    assert "--punct ptb needs tags in the column XPOS" in error("--punct", "ptb")
    bare = tmp_path / "bare.conllu"
    bare.write_text((made / "test.conllu").read_text().replace("PUNCT", "_").replace("NOUN", "_"))
    untagged = error("--test", str(bare))
    assert "--punct upos needs tags in the column UPOS and sentence s2-0 has none" in untagged
    tagged = []
    for part in ("dev", "test"):
        path = tmp_path / f"{part}.conllu"
        path.write_text((made / path.name).read_text().replace("\tNOUN\t_", "\tNOUN\tNN"))
        path.write_text(path.read_text().replace("\tPUNCT\t_", "\tPUNCT\t."))
        tagged += [f"--{part}", str(path)]
    # of the training set
    assert "sentence s0-0 has none" in error("--punct", "ptb", "--control", *tagged)
    assert "missing.pt is not a file" in error("--checkpoint", str(tmp_path / "missing.pt"))
    assert "--rank 1" in error("--rank", "1")
    # its last one is too large
    assert "--seed 4294967296 (0" in error("--seed", "4294967294", "--seeds", "3")
    assert not (tmp_path / "out").exists()


WRONG = """import sys
from probing.commands.cli import PROGRAM, main
for command in PROGRAM.commands:
    try:
        main([command, *sys.argv[1:]])
    except SystemExit as stop:
        print(stop.code)
print(*sorted({"torch", "scipy", "numpy"} & sys.modules.keys()))
"""


def test_options_that_no_command_has_are_refused_before_torch_is_loaded():
    words = [sys.executable, "-c", WRONG, "--wrong"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n") == ["2"] * len(PROGRAM.commands) + ["", ""]


@pytest.mark.parametrize(
    ("words", "flag", "value"),
    [
        (["run"], "--seeds", "0"),
        (["run"], "--batch-tokens", "-5"),
        (["geometry"], "--sentences", "0"),
        (["annotate"], "--batch-size", "x"),
    ],
)
def test_a_count_of_nothing_is_refused_by_name(words, flag, value, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([*words, f"{flag}={value}"])
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.endswith(f"error: argument {flag}: {value!r} is not a whole number above 0")


def test_a_checkpoint_that_is_none_is_told(made, tmp_path, capsys):
    torch.save({"weights": torch.zeros(2)}, tmp_path / "other.pt")
    words = run_words(made, tmp_path / "out", models=[])
    error = error_of(capsys, [*words, "--checkpoint", tmp_path / "other.pt"])
    assert "other.pt" in error
    assert "was not written by fairseq" in error


@pytest.mark.parametrize("command", PROGRAM.commands)
def test_every_command_has_help_with_an_example_that_it_takes(command, capsys):
    parser = PROGRAM.parser(command)[0]
    name, *words = PROGRAM.commands[command].example.split()
    assert name == command
    parser.parse_args(words)
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    text = capsys.readouterr().out
    assert f"hyptrans probe {PROGRAM.commands[command].example}" in text


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_lists_the_commands(words, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(words)
    text = capsys.readouterr().out
    assert all(command.about in text for command in PROGRAM.commands.values())


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["probe"])
    assert "invalid choice: 'probe'" in capsys.readouterr().err


def test_a_table_shows_what_is_undefined():
    nan = float("nan")
    one = ModelResult(
        "a", "", "", "", [], 0, 0, {"uuas": 0.5, "dspr": nan, "root": 0.125}, "baseline"
    )
    other = ModelResult("b", "x", "", "", [{}], 0, 3, dict.fromkeys(METRICS, 0.98765))
    lines = table([one, other]).splitlines()
    assert lines[0] == "| model | UUAS | Dspr. | Root | Nspr. | layers |"
    assert lines[2] == "| a | 0.500 | - | 0.125 | - |  |"
    assert lines[3] == "| b | 0.988 | 0.988 | 0.988 | 0.988 | 0 / 3 |"
    assert "Signature: `line`" in markdown([one], "line", ["A note."])
