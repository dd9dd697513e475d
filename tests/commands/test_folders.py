"""``hyptrans export``, ``info``, ``push`` and ``score``."""

import json
import shutil

import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF

from hyptrans.inference.load import SHIPPED
from tests.commands.conftest import call, refused


@pytest.mark.parametrize("more", [[], ["--lowercase"]])
def test_score_matches_sacrebleu_and_prints_its_signature(more, tmp_path, capsys):
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
        assert f"{name} {value:.2f} {signature}\n" in shown
    (tmp_path / "ref").write_text("one\n")
    said = refused(capsys, "score", tmp_path / "out", tmp_path / "ref")
    assert said == f"{tmp_path / 'out'} has 2 translations for 1 lines of {tmp_path / 'ref'}"


def test_export_writes_a_card_with_scores_that_info_shows(make, texts, tmp_path, capsys):
    sources = [text for text in texts if text]
    (tmp_path / "my test.en").write_text("".join(f"{text}\n" for text in sources))
    (tmp_path / "test.de").write_text("".join(f"{text}\n" for text in reversed(sources)))
    out = tmp_path / "made"
    test = ["--test", tmp_path / "my test.en", tmp_path / "test.de"]
    about = ["--dataset", "some words", "--license", "mit"]
    path = make("hybonet", "--curvature", "0.5")
    command = "fairseq-train PATH --user-dir hyptrans --arch hybonet --curvature 0.5"
    torch.save({**torch.load(path), "command": command}, path)
    status, shown, _ = call(capsys, "export", path, "--out", out, *test, *about)
    assert status == 0
    config = json.loads((out / "config.json").read_text())
    score = next(one for one in config["facts"]["scores"] if one["name"] == "BLEU")
    assert f"BLEU {score['value']:.2f} {score['signature']}" in shown
    card = (out / "README.md").read_text()
    assert f"| BLEU | {score['value']:.2f} | `{score['signature']}` |" in card
    assert command in card
    assert "\nhyptrans translate FOLDER < 'my test.en' > output\nsacrebleu test.de -i" in card
    assert str(tmp_path) not in card + (out / "config.json").read_text()
    hub = pytest.importorskip("huggingface_hub")
    data = hub.ModelCard(card).data
    assert data.license == "mit"
    assert data.language == ["en", "de"]
    assert next(one.metric_value for one in data.eval_results) == score["value"]

    status, shown, _ = call(capsys, "info", out)
    found = json.loads(shown)
    assert found["architecture"] == "hybonet"
    assert found["spaces"] == ["lorentz c=0.5"]
    assert found["radii of embeddings"]["encoder"]["greatest"] > 0
    assert found["scores"]["BLEU"] == score["value"]
    assert found["options"]["curvature"] == 0.5


def test_info_escapes_terminal_control_characters(tmp_path, capsys):
    made = shutil.copytree(SHIPPED / "tatoeba-en-de", tmp_path / "made")
    config = json.loads((made / "config.json").read_text())
    config["facts"]["license"] = "mit\x1b]0;title\x07\x1b[2J\u202etim\nerror: \u2028run \x9bm"
    config["facts"]["scores"][0] |= {"name": "BLEU\nscore", "value": float("nan")}
    (made / "config.json").write_text(json.dumps(config))
    status, shown, _ = call(capsys, "info", made)
    assert status == 0
    assert shown.isascii()
    assert "\x1b" not in shown
    assert json.loads(shown)["license"] == config["facts"]["license"]
    # JSON has no word for NaN
    assert json.loads(shown, parse_constant=pytest.fail)["scores"]["BLEU\nscore"] is None


def test_export_leaves_overlong_lines_empty_as_translate_does(make, tmp_path, capsys):
    (tmp_path / "test.en").write_text(f"a dog\n{'dog ' * 5000}\n")
    (tmp_path / "test.de").write_text("a\nb\n")
    test = ["--test", tmp_path / "test.en", tmp_path / "test.de"]
    status, shown, error = call(capsys, "export", make("hybonet"), "--out", tmp_path / "m", *test)
    assert (status, "BLEU" in shown) == (0, True)
    assert "warning: line 2 has" in error


def test_files_that_are_no_model_leave_no_folder(tmp_path, capsys):
    path = tmp_path / "x.pt"
    path.write_text("hello")
    said = refused(capsys, "export", path, "--out", tmp_path / "out")
    assert said == f"checkpoint {path} is no file of torch: name a model folder instead"
    assert not (tmp_path / "out").exists()
    said = refused(capsys, "push", tmp_path, "user/name")
    assert "config.json does not belong to a model folder (it does not exist)" in said


def test_export_refuses_a_foreign_folder_before_translating(make, tmp_path, capsys):
    path = make("hybonet")
    (tmp_path / "config.json").write_text("{}")
    # which would be told, were it read
    test = ["--test", tmp_path / "none.en", tmp_path / "none.de"]
    said = refused(capsys, "export", path, "--out", tmp_path, *test)
    assert said == f"{tmp_path} already exists and is not a model folder: name another --out"
    assert path.is_file()


def test_export_names_a_mismatched_checkpoint_and_data_folder(make, prepared, tmp_path, capsys):
    data = shutil.copytree(prepared, tmp_path / "other")
    with (data / "data-bin" / "dict.en.txt").open("a") as file:
        file.write("zz 1\n")
    path = make("hybonet")
    said = refused(capsys, "export", path, "--data", data, "--out", tmp_path / "model")
    what = f"checkpoint {path} with --data {data}"
    assert said.startswith(f"{what} cannot be used: its encoder.embed_tokens.")


def test_invalid_bpe_codes_give_a_one_sentence_error(make, prepared, tmp_path, capsys):
    pytest.importorskip("subword_nmt")
    text = tmp_path / "train.en"
    text.write_text("the dog sees a cat .\n")
    said = refused(capsys, "info", make("hybonet"), "--data", prepared, "--bpe-codes", text)
    assert f"{text} is not a subword-nmt model (Error: invalid line 1 in BPE codes" in said
