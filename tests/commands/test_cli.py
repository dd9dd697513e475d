"""The commands of hyptrans, as they are typed."""

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF

import hyptrans
from hyptrans.commands import translate
from hyptrans.commands.cli import PROGRAM
from hyptrans.fairseq import checkpoint
from hyptrans.inference.load import SHIPPED, shipped
from hyptrans.inference.sentences import Language
from hyptrans.support import flags
from hyptrans.support.files import out_file
from probing.commands.cli import PROGRAM as PROBING
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


PROGRAMS = [PROGRAM, *map(PROGRAM.within, PROGRAM.programs)]
SAME = {
    "--data": ("DIR", Path),
    "--device": ("NAME", None),
    "--out": ("DIR", Path),
    "--overwrite": (None, None),
    "--seed": ("N", flags.seed),
}
"""How options of one meaning are read, or ``--out FILE``."""


def helped(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        PROGRAM.run(words)
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_command_has_help_with_an_example(program, capsys):
    within = program.name.split()[1:]
    overview = helped(capsys, *within)
    for name in program.commands:
        shown = helped(capsys, *within, name, "--help")
        assert shown.startswith(f"usage: {program.name} {name} ")
        assert f"example:\n  {program.name} {name} " in shown
        assert f"\n  {name} " in overview
    assert helped(capsys, "help", *within) == helped(capsys, *within, "--help") == overview
    # the last of them
    assert helped(capsys, "help", *within, name) == shown


def test_the_whole_program_names_its_version_and_the_programs_within(capsys):
    assert helped(capsys, "--version") == f"hyptrans {hyptrans.__version__}\n"
    overview = helped(capsys)
    assert all(f"\n  {name} " in overview for name in PROGRAM.programs)
    assert PROBING.name == "python -m probing"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_options_of_one_meaning_are_read_alike(program):
    for name in program.commands:
        for action in program.parser(name)._actions:
            for option in SAME.keys() & action.option_strings:
                found = (action.metavar, action.type)
                assert found in (SAME[option], ("FILE", out_file)), (program.name, name, option)


def test_switches_of_the_release_before_still_work_and_are_not_shown(capsys):
    probe = PROGRAM.within("probe")
    for program, name, words, old in [
        (PROGRAM, "replay", ["crash.pt"], {"--cpu": "cpu"}),
        (probe, "annotate", ["--text", "t", "--out", "o"], {"--cpu": "cpu", "--gpu": "cuda"}),
    ]:
        parser = program.parser(name)
        for switch, device in old.items():
            assert switch not in parser.format_help()
            assert parser.parse_args([*words, switch]).device == device


def test_a_wrong_command_is_refused_before_anything_heavy_is_imported():
    code = (
        "import sys\nfrom hyptrans.commands.cli import main\n"
        "for words in (['nonsense'], ['prepare', 'nonsense'], ['probe', 'nonsense'],"
        " ['prepare', 'text', '--oops'], ['translate'], ['export', '--oops'], ['replay']):\n"
        "    try:\n        main(words)\n"
        "    except SystemExit as ended:\n        assert ended.code == 2\n"
        "print('HEAVY', *{'torch', 'fairseq'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY"


@pytest.mark.parametrize("more", [[], ["--lowercase"], ["--json"]])
def test_score_is_sacrebleus_with_its_signature(more, tmp_path, capsys):
    lines = ["A small dog sees the big house .", "the cat sleeps under a tall tree ."]
    wanted = ["a small dog sees the big house .", "the cat slept under a tall tree ."]
    (tmp_path / "out").write_text("".join(f"D-{i}\t-0.1\t{lines[i]}\n" for i in (1, 0)))
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in wanted))
    status, shown, _ = call(capsys, "score", tmp_path / "out", tmp_path / "ref", *more)
    assert status == 0
    for name, metric in (("BLEU", BLEU), ("chrF", CHRF)):
        own = metric(lowercase="--lowercase" in more)
        value = round(own.corpus_score(lines, [wanted]).score, 2)
        signature = own.get_signature().format(short=False)
        if "--json" in more:
            assert json.loads(shown)[name] == {"value": value, "signature": signature}
        else:
            assert f"{name} {value:.2f} {signature}\n" in shown
    (tmp_path / "ref").write_text("one\n")
    status, _, error = call(capsys, "score", tmp_path / "out", tmp_path / "ref")
    assert (status, error) == (
        2, f"error: {tmp_path / 'out'} has 2 translations for 1 lines of {tmp_path / 'ref'}"
    )  # fmt: skip


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


def test_translate_has_a_line_for_a_line(model, texts, capsys, monkeypatch):
    wanted = hyptrans.load(model).translate(texts)
    typed(monkeypatch, "".join(f"{text}\n" for text in texts).encode())
    status, out, _ = call(capsys, "translate", model)
    assert status == 0
    assert out == "".join(f"{text}\n" for text in wanted)


def test_translations_are_utf8_whatever_the_locale_is(model, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(translate, "_translated", lambda *_: ["\N{GREEK SMALL LETTER PI}"])
    typed(monkeypatch, b"x\n")
    assert PROGRAM.run(["translate", str(model)]) == 0
    assert out.buffer.getvalue().decode() == "\N{GREEK SMALL LETTER PI}\n"


def test_a_translation_is_one_line_that_a_terminal_does_not_act_on(model, capsys, monkeypatch):
    made = "a\x1b[2J\x9bm\u2028b\x85c\td"
    monkeypatch.setattr(translate, "_translated", lambda *_: [made])
    typed(monkeypatch, b"x\n")
    assert call(capsys, "translate", model)[1] == "a[2Jm b c\td\n"


def test_translate_n_best_numbers_its_lines(model, texts, capsys, monkeypatch):
    typed(monkeypatch, f"{texts[0]}\r\n{texts[1]}".encode())
    _, out, _ = call(capsys, "translate", model, "--n-best", 3, "--beam", 3)
    found = hyptrans.load(model).n_best(texts[:2], 3, beam=3)
    assert out.splitlines() == [
        f"{number}\t{one.score:.4f}\t{one.text}"
        for number, hypotheses in enumerate(found, start=1)
        for one in hypotheses
    ]


def test_a_terminal_sees_what_is_translated(model, texts, capsys, monkeypatch):
    typed(monkeypatch, "\n".join(texts[:3]).encode())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert PROGRAM.run(["translate", str(model)]) == 0
    shown = capsys.readouterr().err
    assert "translate: 100%" in shown
    assert "3.00/3.00" in shown


def test_each_line_is_cut_into_subwords_once(model, texts, capsys, monkeypatch):
    cut, row = [], Language._row
    monkeypatch.setattr(Language, "_row", lambda *one: (cut.append(one[-1]), row(*one))[1])
    monkeypatch.setattr(Language, "too_long", lambda *_: pytest.fail("none is"))
    typed(monkeypatch, "\n".join(texts).encode())
    assert call(capsys, "translate", model)[0] == 0
    assert cut == texts


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
    monkeypatch,
):
    sources = [text for text in texts if text]
    (tmp_path / "my test.en").write_text("".join(f"{text}\n" for text in sources))
    (tmp_path / "test.de").write_text("".join(f"{text}\n" for text in reversed(sources)))
    out = tmp_path / "made"
    test = ["--test", tmp_path / "my test.en", tmp_path / "test.de"]
    about = ["--dataset", "some words", "--license", "mit"]
    path = make("hybonet", "--curvature", "0.5")
    reads, read = [], checkpoint.read_state
    monkeypatch.setattr(checkpoint, "read_state", lambda path: (reads.append(path), read(path))[1])
    status, shown, _ = call(capsys, "export", path, "--out", out, *test, *about)
    assert reads == [path]
    assert status == 0
    config = json.loads((out / "config.json").read_text())
    score = next(one for one in config["facts"]["scores"] if one["name"] == "BLEU")
    assert f"BLEU {score['value']:.2f} {score['signature']}" in shown
    card = (out / "README.md").read_text()
    assert f"| BLEU | {score['value']:.2f} | `{score['signature']}` |" in card
    assert "--arch hybonet" in card
    assert "\nhyptrans translate FOLDER < 'my test.en' > output\nsacrebleu test.de -i" in card
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
    config["facts"]["license"] = "mit\x1b]0;title\x07\x1b[2J\u202etim\nerror: \u2028run \x9bm"
    config["facts"]["scores"][0] |= {"name": "BLEU\nscore", "value": float("nan")}
    (made / "config.json").write_text(json.dumps(config))
    status, shown, _ = call(capsys, "info", made)
    assert status == 0
    assert "mit\ufffd]0;title\ufffd\ufffd[2J\ufffdtim error:  run \ufffdm\n" in shown
    assert "BLEU score" in shown
    status, shown, _ = call(capsys, "info", made, "--json")
    assert shown.isascii()
    assert "\x1b" not in shown
    assert json.loads(shown)["license"] == config["facts"]["license"]
    # JSON has no word for NaN
    assert json.loads(shown, parse_constant=pytest.fail)["scores"]["BLEU\nscore"] is None


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
    status, _, error = call(capsys, "average", tmp_path / "none", "--best", 2, "--out", out)
    assert status == 2
    assert error == f"error: folder {tmp_path / 'none'} does not exist: name a --save-dir"


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


@pytest.mark.parametrize(
    "averaged",
    ["x", 5, torch.zeros(3), np.array([1]), ["x"], [True], [-1], [1 << 64], {"a": 1}],
    ids=lambda value: type(value).__name__,
)
def test_an_average_of_no_numbers_of_updates_is_refused(averaged, make, tmp_path, capsys):
    path = make("transformer")
    state = torch.load(path, weights_only=True)
    state["extra_state"]["averaged_updates"] = averaged
    torch.save(state, path)
    status, _, error = call(capsys, "export", path, "--out", tmp_path / "model")
    wanted = "cannot be used: its averaged_updates is not what hyptrans average writes"
    assert (status, error) == (2, f"error: checkpoint {path} {wanted}")


def test_an_average_in_place_of_one_of_its_checkpoints_is_refused(make, tmp_path, capsys):
    paths = [shutil.copy(make("hybonet"), tmp_path / f"checkpoint_1_{n}.pt") for n in (1, 2)]
    before = [path.read_bytes() for path in paths]
    (tmp_path / "link.pt").symlink_to(paths[0])
    named = "one of the checkpoints to average"
    for out, chosen, wrong in [
        (paths[1], paths, named),
        (tmp_path / "link.pt", paths, named),
        (paths[1], [tmp_path, "--last", "1"], "there already and is no average"),
    ]:
        status, _, error = call(capsys, "average", *chosen, "--out", out)
        assert status == 2
        assert error == f"error: --out {out} is {wrong}: name another file"
    assert [path.read_bytes() for path in paths] == before


def test_an_average_takes_the_place_of_an_average_alone(make, tmp_path, capsys):
    paths = [make("hybonet"), make("hybonet")]
    out, best, note = (tmp_path / name for name in ("average.pt", "checkpoint_best.pt", "note"))
    for _ in range(2):
        assert call(capsys, "average", *paths, "--out", out)[0] == 0
    shutil.copy(make("hybonet"), best)
    note.write_text("mine")
    for other in (best, note):
        before = other.read_bytes()
        status, _, error = call(capsys, "average", *paths, "--out", other)
        assert status == 2
        assert (
            error == f"error: --out {other} is there already and is no average: name another file"
        )
        assert other.read_bytes() == before


def test_an_average_in_place_of_what_a_training_goes_on_from_is_refused(make, tmp_path, capsys):
    last = tmp_path / "checkpoint_last.pt"
    for _ in range(2):
        status, _, error = call(capsys, "average", make("hybonet"), "--out", last)
        assert status == 2
        assert error.startswith(f"error: --out {last} is what fairseq-train goes on from, and")
        assert not last.exists() or last.read_text() == "mine"
        last.write_text("mine")


def test_a_folder_as_out_is_refused_before_anything_is_read(tmp_path, capsys):
    refused = []
    for program in (PROGRAM, PROBING):
        for name in program.commands:
            parser = program.parser(name)
            if not re.search(r"--out FILE", parser.format_help()):
                continue
            assert program.run([name, "--out", str(tmp_path)]) == 2
            assert capsys.readouterr().err == (
                f"error: --out {tmp_path} is a folder, a file is needed: name one, in it if you "
                "like\n"
            )
            refused.append(name)
    assert len(refused) == 7


def test_export_refuses_a_folder_of_other_things_before_it_translates(make, tmp_path, capsys):
    path = make("hybonet")
    (tmp_path / "config.json").write_text("{}")
    # which would be told, were it read
    test = ["--test", tmp_path / "none.en", tmp_path / "none.de"]
    status, _, error = call(capsys, "export", path, "--out", tmp_path, *test)
    assert status == 2
    assert error == (
        f"error: {tmp_path} is there already and is no model folder: name another --out"
    )
    assert path.is_file()


def test_export_names_checkpoint_and_data_that_do_not_go_together(make, prepared, tmp_path, capsys):
    data = shutil.copytree(prepared, tmp_path / "other")
    with (data / "data-bin" / "dict.en.txt").open("a") as file:
        file.write("zz 1\n")
    path = make("hybonet")
    words = ["export", path, "--data", data, "--out", tmp_path / "model"]
    status, _, error = call(capsys, *words)
    assert status == 2
    assert error.startswith(
        f"error: checkpoint {path} with --data {data} cannot be used: its encoder dictionary has"
    )


def test_codes_that_are_none_are_told_in_one_sentence(make, prepared, tmp_path, capsys):
    pytest.importorskip("subword_nmt")
    text = tmp_path / "train.en"
    text.write_text("the dog sees a cat .\n")
    capsys.readouterr()
    words = ["info", make("hybonet"), "--data", prepared, "--bpe-codes", text]
    assert PROGRAM.run([*map(str, words)]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert f"{text} is not a subword-nmt model (Error: invalid line 1 in BPE codes" in error


STARTED = {
    "translate": ["-m", "hyptrans", "translate", "tatoeba-en-de"],
    "compare": ["-m", "hyptrans", "compare", "text", "text", "text"],
    "prepare_text.py": [ROOT / "data-prep" / "prepare_text.py", "--help"],
}


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "command", [pytest.param("translate", marks=pytest.mark.slow), *list(STARTED)[1:]]
)
def test_a_stream_that_is_closed_is_empty(command, closed, tmp_path):
    (tmp_path / "text").write_text("Hello.\n" * 3)
    typed = shlex.join([sys.executable, *map(str, STARTED[command])])
    done = subprocess.run(
        f"{typed} {closed}", shell=True, cwd=tmp_path, input="", capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (command != "translate" and ">&-" not in closed.split())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [["info"], pytest.param(["translate"], marks=pytest.mark.slow)])
def test_output_to_a_full_disk_promises_nothing(words, monkeypatch):
    # as it is for most users, written when the buffer is full, or in the end
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    command = [sys.executable, "-m", "hyptrans", *words, "tatoeba-en-de"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, cwd=ROOT, input="Hello.\n", stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (
        2,
        "error: the disk is full or a size limit is reached (No space left on device); free some "
        "space, then run the same command again\n",
    )


def test_push_refuses_what_is_no_model_folder(tmp_path, capsys):
    status, _, error = call(capsys, "push", tmp_path, "user/name")
    assert status == 2
    assert "config.json is missing" in error
