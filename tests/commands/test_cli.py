"""The commands of hyptrans, as they are typed."""

import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import hyptrans
from hyptrans.commands.cli import PROGRAM
from hyptrans.inference.load import SHIPPED, shipped
from tests.inference.conftest import export

ROOT = Path(__file__).parents[2]
UNKNOWN_SUBWORDS = (
    "does not say how its text became subwords (no manifest.json): name the subword model with "
    "--sentencepiece-model or --bpe-codes, or say --no-subwords"
)


@pytest.fixture
def model(make, tmp_path):
    return export(make("hybonet"), tmp_path / "model")


def call(capsys, *words):
    """Run a command here; returns its status, output and last line of errors."""
    capsys.readouterr()
    status = PROGRAM.run([*map(str, words)])
    shown = capsys.readouterr()
    return status, shown.out, (shown.err.splitlines() or [""])[-1]


def typed(monkeypatch, data):
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stream)


def test_every_command_has_help_with_an_example(capsys):
    for name in PROGRAM.commands:
        with pytest.raises(SystemExit) as ended:
            PROGRAM.run([name, "--help"])
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        assert f"hyptrans {name} " in shown
        assert "example:" in shown
    with pytest.raises(SystemExit):
        PROGRAM.run([])
    assert all(name in capsys.readouterr().out for name in ["translate"])


@pytest.mark.parametrize("command", ["translate", "info"])
def test_a_checkpoint_of_other_data_is_read_with_its_subword_model_named(
    command, make, prepared, tmp_path, capsys, monkeypatch
):
    bare = shutil.copytree(prepared / "data-bin", tmp_path / "bare")
    words = [command, make("hybonet"), "--data", bare]
    typed(monkeypatch, b"")
    assert call(capsys, *words)[::2] == (2, f"error: {bare} {UNKNOWN_SUBWORDS}")
    model = prepared / "sentencepiece.model"
    assert call(capsys, *words, "--sentencepiece-model", model)[0] == 0


def test_examples_name_models_that_are_there(capsys):
    examples = [command.example for command in PROGRAM.commands.values()]
    named = [example.split()[1] for example in examples if example.startswith(("tr", "info"))]
    named += re.findall(r'load\("([^"]+)"\)', hyptrans.load.__doc__)
    assert len(named) == 3
    assert set(named) <= set(shipped())


def test_the_list_of_commands_needs_nothing_heavy():
    code = (
        "import sys\nfrom hyptrans.commands.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print('HEAVY', *{'torch', 'numpy', 'fairseq'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY"


def test_translate_has_a_line_for_a_line(model, texts, capsys, monkeypatch):
    wanted = hyptrans.load(model).translate(texts)
    typed(monkeypatch, "".join(f"{text}\n" for text in texts).encode())
    status, out, _ = call(capsys, "translate", model)
    assert status == 0
    assert out == "".join(f"{text}\n" for text in wanted)


def test_translate_n_best_numbers_its_lines(model, texts, capsys, monkeypatch):
    typed(monkeypatch, f"{texts[0]}\r\n{texts[1]}".encode())
    _, out, _ = call(capsys, "translate", model, "--n-best", 2, "--beam", 3)
    found = hyptrans.load(model).n_best(texts[:2], 2, beam=3)
    assert out.splitlines() == [
        f"{number}\t{one.score:.4f}\t{one.text}"
        for number, hypotheses in enumerate(found, start=1)
        for one in hypotheses
    ]


def test_a_line_that_is_too_long_is_left_out_and_told(model, texts, capsys, monkeypatch):
    typed(monkeypatch, f"{texts[0]}\n{'dog ' * 5000}\n{texts[1]}\n".encode())
    status, out, error = call(capsys, "translate", model)
    first, second = hyptrans.load(model).translate(texts[:2])
    assert (status, out) == (0, f"{first}\n\n{second}\n")
    assert "line 2 has" in error
    assert "its translation is left empty" in error


@pytest.mark.parametrize(
    ("words", "data", "message"),
    [
        (["nowhere-at-all"], b"", "error: nowhere-at-all is neither a file or folder"),
        (["MODEL", "--n-best", "7"], b"a\n", "error: --n-best must be from 1 to --beam, 5, got 7"),
        (["MODEL", "--beam", "0"], b"a\n", "error: beam must be at least 1, got 0"),
        (["MODEL"], b"a\n\xff\n", "error: standard input, line 2: byte 0xff at position 1"),
        (["MODEL", "--device", "tpu9"], b"a\n", "error: device tpu9 cannot be used"),
    ],
)
def test_translate_answers_bad_input_in_one_sentence(
    words, data, message, model, capsys, monkeypatch
):
    typed(monkeypatch, data)
    words = [model if word == "MODEL" else word for word in words]
    status, out, error = call(capsys, "translate", *words)
    assert (status, out) == (2, "")
    assert error.startswith(message)


def test_a_file_without_lines_is_not_read_to_its_end(model, capsys, monkeypatch):
    # which may be endless, as /dev/zero
    endless = io.BytesIO(b"the dog.\n" + b"\0" * (3 << 20))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(endless, encoding="utf-8"))
    status, out, error = call(capsys, "translate", model)
    assert (status, out) == (2, "")
    assert error.startswith("error: standard input, line 2 has more than 1,048,576 bytes")
    assert endless.tell() < 2 << 20


def test_no_input_has_no_output(model, capsys, monkeypatch):
    typed(monkeypatch, b"")
    assert call(capsys, "translate", model)[:2] == (0, "")


def test_export_writes_what_info_tells_and_the_card_has_the_scores(
    make,
    texts,
    tmp_path,
    capsys,
):
    sources = [text for text in texts if text]
    (tmp_path / "test.en").write_text("".join(f"{text}\n" for text in sources))
    (tmp_path / "test.de").write_text("".join(f"{text}\n" for text in reversed(sources)))
    out = tmp_path / "made"
    test = ["--test", tmp_path / "test.en", tmp_path / "test.de"]
    about = ["--dataset", "some words", "--license", "mit"]
    path = make("hybonet", "--curvature", "0.5")
    status, shown, _ = call(capsys, "export", path, "--out", out, *test, *about)
    assert status == 0
    config = json.loads((out / "config.json").read_text())
    score = next(one for one in config["facts"]["scores"] if one["name"] == "BLEU")
    assert f"BLEU {score['value']:.2f} {score['signature']}" in shown
    card = (out / "README.md").read_text()
    assert f"| BLEU | {score['value']:.2f} | `{score['signature']}` |" in card
    assert "--arch hybonet" in card
    assert "--curvature 0.5" in card
    assert str(tmp_path) not in card + (out / "config.json").read_text()
    hub = pytest.importorskip("huggingface_hub")
    data = hub.ModelCard(card).data
    assert data.license == "mit"
    assert data.language == ["en", "de"]
    assert next(one.metric_value for one in data.eval_results) == score["value"]

    status, shown, _ = call(capsys, "info", out, "--json")
    found = json.loads(shown)
    assert found["architecture"] == "hybonet"
    assert found["spaces"] == ["lorentz c=0.5"]
    assert found["radii of embeddings"]["encoder"]["greatest"] > 0
    assert found["scores"]["BLEU"] == score["value"]
    assert "curvature" in call(capsys, "info", out)[1]


def test_info_shows_nothing_that_a_terminal_acts_on(tmp_path, capsys):
    made = shutil.copytree(SHIPPED / "tatoeba-en-de", tmp_path / "made")
    config = json.loads((made / "config.json").read_text())
    config["facts"]["license"] = "mit\x1b]0;title\x07\x1b[2J\u202etim"
    (made / "config.json").write_text(json.dumps(config))
    status, shown, _ = call(capsys, "info", made)
    assert status == 0
    assert "mit\ufffd]0;title\ufffd\ufffd[2J\ufffdtim" in shown


def test_export_of_what_is_no_checkpoint_leaves_nothing(tmp_path, capsys):
    (tmp_path / "x.pt").write_text("hello")
    status, _, error = call(capsys, "export", tmp_path / "x.pt", "--out", tmp_path / "out")
    assert status == 2
    assert error.startswith("error: checkpoint ")
    assert not (tmp_path / "out").exists()


def test_average_writes_a_checkpoint(make, tmp_path, capsys):
    paths = [make("hybonet"), make("hybonet")]
    out = tmp_path / "average.pt"
    assert call(capsys, "average", *paths, "--out", out)[0] == 0
    assert hyptrans.load(out).architecture == "hybonet"
    status, _, error = call(capsys, "average", *paths, "--last", 2, "--out", out)
    assert status == 2
    assert error == "error: --last and --best choose from one folder: name that alone"


def test_the_card_of_an_average_says_that_it_is_one(make, tmp_path, capsys):
    paths = []
    for updates in (1400, 1500):
        paths.append(make("hybonet"))
        state = torch.load(paths[-1], weights_only=True)
        state["optimizer_history"][-1]["num_updates"] = updates
        torch.save(state, paths[-1])
    out = tmp_path / "average.pt"
    assert call(capsys, "average", *paths, "--out", out)[0] == 0
    assert call(capsys, "export", out, "--out", tmp_path / "model")[0] == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert "* Parameters: the average of those after 1,400, 1,500 updates" in card
    assert "1,400, 1,500" in call(capsys, "info", tmp_path / "model")[1]
    assert call(capsys, "export", paths[0], "--out", tmp_path / "one")[0] == 0
    assert "average" not in (tmp_path / "one" / "README.md").read_text()


def test_push_refuses_what_is_no_model_folder(tmp_path, capsys):
    status, _, error = call(capsys, "push", tmp_path, "user/name")
    assert status == 2
    assert "config.json is missing" in error
