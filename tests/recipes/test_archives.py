"""The recipes of published corpora: from archives to one row a model."""

import json
import shutil
from dataclasses import replace

import pytest

from hyptrans.support.errors import UserError
from recipes.common.runner import Runner
from recipes.common.translation import Run
from recipes.iwslt14_en_de import __main__ as iwslt
from recipes.multi30k_en_de import __main__ as multi30k
from recipes.wmt14_en_de import __main__ as wmt
from tests.data.commands.test_iwslt14 import COUNTS, corpus
from tests.data.conftest import tree
from tests.recipes.scripts import run_script

MODEL, OTHER = "euclidean_prenorm_iwslt_d64", "hybonet_iwslt_d64"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--raw-text"], "--raw-text is decided by this recipe: leave it out"),
        (["--bpe=sentencepiece"], "--bpe is decided by this recipe: leave it out"),
        *(
            (["--train-flags", f"--lr 1 {flag}=9"], f"{flag} of --train-flags is decided by this")
            for flag in ("--max-update", "--save-dir", "--seed", "--arch")
        ),
        (["--average", "0", "--jobs", "-1"], "at least 1 is needed: --average 0, --jobs -1"),
    ],
)
def test_what_cannot_be_asked_for_is_told_before_any_work(tmp_path, words, message):
    with pytest.raises(UserError, match=f"^{message}"):
        iwslt.CORPUS.main("", ["--out", str(tmp_path / "out"), "--raw", "DIR", *words])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("commands", "also"), [([], True), (["a --valid-from-train 9"], False)])
def test_a_test_set_that_models_were_chosen_by_is_told(commands, also):
    caption = wmt.table(FOUND | {"commands": commands}).splitlines()[-1]
    assert (", of which newstest2013 is the validation set too" in caption) == also


@pytest.mark.slow
def test_a_set_that_the_source_has_not_is_told_before_any_training(tmp_path):
    folder, out = corpus(tmp_path / "de-en"), tmp_path / "out"
    two = wmt.CORPUS.columns
    wanting = replace(iwslt.CORPUS, columns=two)
    options = ["--raw", str(folder), "--vocab-size", "60", "--workers", "1", "--cpu"]
    with pytest.raises(UserError, match=r"has no set for .*newstest2013: .* is missing, take"):
        wanting.main("", [*options, "--out", str(out)])
    assert [path.name for path in (out / "logs").glob("*.done")] == ["prepare.done"]


@pytest.mark.slow
def test_a_finished_preparation_outlives_its_source_and_is_compared_while_that_is_there(
    tmp_path, capsys
):
    folder, out = corpus(tmp_path / "lang=de" / "de-en"), tmp_path / "out"
    run = Run(out, "en", "de", seed=1, updates=None, threads=1, cpu=True)

    def prepare(*others):
        words = [f"--raw={folder}", "--vocab-size", "60", "--workers", "1", *others]
        Runner(out).run(iwslt.CORPUS.prepare(run, words))
        return capsys.readouterr().out

    assert "prepare: done" in prepare()
    made = tree(run.data)
    # what the script does not read is nothing to it
    (folder / "notes").write_text("mine")
    prepare()
    assert tree(run.data) == made
    text = folder / "train.tags.de-en.de"
    text.write_text(text.read_text() + "mehr\n")
    with pytest.raises(UserError, match="is finished, with other options or input"):
        prepare()
    with pytest.raises(UserError, match="is finished, and was made by another command"):
        prepare("--joined-dictionary")
    assert tree(run.data) == made
    shutil.rmtree(folder)
    assert "prepare: reused" in prepare()


FOUND = {
    "models": {
        "a": {
            "parameters": 1234567,
            "updates": 100000,
            "valid_perplexity": 5.123,
            "bleu_2014": 27.34,
            "bleu_2013": 25.0,
        },
    },
    "signatures": {"bleu_2014": "tok:13a", "bleu_2013": "tok:13a"},
    "updates": None,
    "seed": 1,
    "versions": {"torch": "2.6.0", "fairseq": "0.12.2"},
}


def test_a_table_has_what_was_measured_and_every_signature_once():
    table = wmt.table(FOUND).splitlines()
    assert table[0] == (
        "| model | parameters | updates | valid perplexity | BLEU, newstest2014 "
        "| BLEU, newstest2013 |"
    )
    assert table[2] == "| a | 1,234,567 | 100,000 | 5.12 | 27.3 | 25.0 |"
    assert table[-1].startswith("sacreBLEU `tok:13a` on newstest2014 and newstest2013")
    assert " updates; " not in table[-1]
    # of one length for all there is a word below
    table = wmt.table(FOUND | {"updates": 1500}).splitlines()
    assert "updates" not in table[0]
    assert "; 1,500 updates; " in table[-1]
    found = FOUND | {"signatures": {"bleu_2014": "tok:13a", "bleu_2013": "tok:none"}}
    assert wmt.table(found).splitlines()[-1].startswith("sacreBLEU `tok:13a`, `tok:none` on news")
    found = FOUND | {"signatures": {"bleu_2014": "tok:13a"}}
    assert "newstest2013" not in wmt.table(found).splitlines()[0]
    for perplexity in (None, float("inf")):
        broken = FOUND["models"]["a"] | {"valid_perplexity": perplexity}
        table = wmt.table(FOUND | {"models": {"a": broken}}).splitlines()
        assert table[2] == "| a | 1,234,567 | 100,000 | diverged | 27.3 | 25.0 |"


@pytest.mark.parametrize("columns", [iwslt.CORPUS.columns, wmt.CORPUS.columns, multi30k.COLUMNS])
def test_chrf_stands_beside_every_bleu_of_beam_search(columns):
    measured = {}
    for column in columns:
        measured.setdefault(column.search, set()).add(column.metric)
    # what is translated greedily shows the search, not the model
    assert all({"bleu", "chrf"} <= of for (beam, _), of in measured.items() if beam > 1)


@pytest.mark.slow
def test_iwslt_gives_a_row_from_the_archive_s_files(tmp_path):
    folder = corpus(tmp_path / "de-en")
    out = tmp_path / "out"
    options = ["--vocab-size", "60", "--workers", "1", "--archs", f"{OTHER},{MODEL}"]
    options += ["--updates", "3", "--average", "2"]
    run = run_script("iwslt14_en_de", "--raw", str(folder), "--out", str(out), "--cpu", *options)
    assert run.returncode == 0, run.stderr + run.stdout

    found = json.loads((out / "results.json").read_text(encoding="utf-8"))
    row = found["models"][MODEL]
    assert row["updates"] == 3
    assert row["valid_perplexity"] > 1
    assert found["signatures"]["bleu"].startswith("nrefs:1|case:lc|eff:no|tok:13a")
    assert found["signatures"]["bleu_tokens"].startswith("nrefs:1|case:lc|eff:no|tok:none")
    assert found["signatures"]["chrf"].startswith("nrefs:1|case:lc|eff:yes|nc:6")
    assert all("|case:lc|" in signature for signature in found["comparison_signatures"].values())
    assert f"| {MODEL} | {row['parameters']:,} | {row['valid_perplexity']:.2f} |" in run.stdout
    assert found["baseline"] == MODEL
    assert found["p"].keys() == {OTHER}
    assert found["p"][OTHER].keys() == {"bleu", "chrf"}
    assert f"({found['p'][OTHER]['chrf']:.3f})" in run.stdout

    train, average, validate, generate = found["commands"][-4:]
    assert "--arch euclidean_prenorm_iwslt_d64" in train
    assert "--save-interval-updates 1 --keep-interval-updates 2" in train
    assert f"-m hyptrans average OUT/{MODEL} --last 2" in average
    assert all(f"{MODEL}/average.pt" in command for command in (validate, generate))
    lines = (out / f"{MODEL}_beam5" / "generate-test.txt").read_text(encoding="utf-8").splitlines()
    translations = [line for line in lines if line.startswith("D-")]
    # every set has one more line than its number
    assert len(translations) == sum(range(2, 2 + len(COUNTS)))
    assert not [line for line in translations if "@@" in line or "&apos;" in line]
