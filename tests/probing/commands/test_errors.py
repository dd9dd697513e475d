"""``hyptrans probe``: what goes wrong, and its help."""

import pytest

from probing.commands.cli import PROGRAM, main
from probing.probes.metrics import METRICS
from probing.report.data import ModelResult
from probing.report.results import markdown, table
from tests.probing.commands.runs import error_of, run_words


def test_out_refuses_a_file(made, tmp_path, capsys):
    out = tmp_path / "out"
    out.write_text("mine")
    error = error_of(capsys, run_words(made, out))
    assert error == f"error: --out {out} is a file, a folder is needed: name another"
    assert out.read_text() == "mine"


def test_an_encoder_must_be_named(made, tmp_path, capsys):
    assert "no encoder is named" in error_of(capsys, run_words(made, tmp_path, models=[]))
    assert "--hf" in error_of(capsys, run_words(made, tmp_path, "--hf", "/none", models=[]))
    # results would go into the encoder's own folder
    error = error_of(capsys, run_words(made, made, models=["hybonet"]))
    assert "into the folder that holds" in error


ROOTLESS = "1\ta\t_\tX\t_\t_\t2\t_\t_\t_\n2\tb\t_\tX\t_\t_\t1\t_\t_\t_\n\n"
SHORT = "1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n\n"


@pytest.mark.parametrize(
    ("part", "text", "reason"),
    [
        ("train", SHORT, " has only sentences of one word"),
        ("dev", SHORT, " has only sentences of one word"),
        ("test", ROOTLESS, ", line 1: the tree has no root"),
    ],
)
def test_unusable_trees_are_refused_before_any_work(made, tmp_path, capsys, part, text, reason):
    file = tmp_path / "wrong.conllu"
    file.write_text(text)
    words = run_words(made, tmp_path / "out")
    words[words.index(f"--{part}") + 1] = str(file)
    assert error_of(capsys, words).startswith(f"error: {file}{reason}")
    assert not (tmp_path / "out").exists()


def test_wrong_options_give_one_sentence_errors(made, tmp_path, capsys):
    def error(*extra):
        return error_of(capsys, run_words(made, tmp_path / "out", *extra))

    assert "--names has 1 values for 2 encoders" in error("--names", "one")
    assert "--names must be letters" in error("--names", "a", "A")
    assert "--names must be letters" in error("--names", "linear chain", "b")
    assert "--names must be letters" in error("--names", "..", "b")
    data = [word for i in range(2) for word in ("--data", str(made / "data"))]
    assert "--data has 3 values for 2" in error(*data)
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
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flag", "value", "wanted"),
    [
        ("--seeds", "0", "a whole number above 0"),
        ("--steps", "-5", "a whole number above 0"),
        ("--rank", "1", "2 or more"),
        ("--lr", "0", "above 0 and finite"),
        ("--lr", "nan", "above 0 and finite"),
        ("--weight-decay", "-2", "0 or more and finite"),
        ("--seed", "4294967296", "a whole number from 0 to 4294967295"),
    ],
)
def test_error_names_the_option_that_is_out_of_range(flag, value, wanted, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["run", f"{flag}={value}"])
    error = capsys.readouterr().err.splitlines()[-1].replace("'", "")
    assert error.endswith(f"error: argument {flag}: {value} is not {wanted}")


@pytest.mark.parametrize("command", PROGRAM.commands)
def test_every_command_accepts_the_example_in_its_help(command, capsys):
    parser = PROGRAM.parser(command)[0]
    name, *words = PROGRAM.commands[command].example.split()
    assert name == command
    parser.parse_args(words)
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    text = capsys.readouterr().out
    assert f"hyptrans probe {PROGRAM.commands[command].example}" in text


def test_a_table_shows_what_is_undefined():
    nan = float("nan")
    one = ModelResult(
        "a", "", "", "", [], 0, 0, {"uuas": 0.5, "dspr": nan, "root": 0.125}, "baseline"
    )
    other = ModelResult("b", "x", "", "", [{}], 0, 3, dict.fromkeys(METRICS, 0.98765))
    lines = table([one, other]).splitlines()
    assert lines[0] == "| model | UUAS | Dspr. | Root | Nspr. | layers |"
    assert lines[2] == "| a | 0.500 | {0} | 0.125 | {0} |  |".format("\N{EN DASH}")
    assert lines[3] == "| b | 0.988 | 0.988 | 0.988 | 0.988 | 0 / 3 |"
    assert "Signature: `line`" in markdown([one], "line", ["A note."])
