"""The commands as a user types them, with the real fairseq behind them."""

import shlex
import sys

import pytest
from fairseq.data import Dictionary, data_utils

from hyptrans.data import subwords
from tests.data.conftest import write
from tests.programs import HYPTRANS, MAIN, ROOT, SCRIPTS, python, run

TINY = "--encoder-embed-dim 8 --decoder-embed-dim 8 --encoder-ffn-embed-dim 8 "
TINY += "--decoder-ffn-embed-dim 8 --encoder-layers 1 --decoder-layers 1 "
TINY += "--encoder-attention-heads 1 --decoder-attention-heads 1"


def binarized_text(out, pair, name, lang, kind):
    """The text of a set as the binary files and the dictionary give it back."""
    dictionary = Dictionary.load(str(out / f"data-bin/dict.{lang}.txt"))
    prefix = out / f"data-bin/{name}.{pair}.{lang}"
    dataset = data_utils.load_indexed_dataset(str(prefix), dictionary, "mmap")
    return [subwords.decode(kind, dictionary.string(tokens)) for tokens in dataset]


def prepare(*words):
    return run(*HYPTRANS, "prepare", "text", *words).stdout


def test_binary_files_decode_to_the_raw_text(tmp_path, corpus):
    out = tmp_path / "out"
    lines = ["  two  spaces ", "<pad> </s>"]
    odd = [write(tmp_path / f"odd.{lang}.gz", lines) for lang in ("en", "de")]
    words = [*corpus(), "--train", *odd, "--test", *odd, "--raw-text", "--vocab-size", 200]
    *_, last = prepare(*words, "--out", out).splitlines()
    assert last == f"hyptrans train {out} --arch hybonet_plus_iwslt_d64 --out runs/out"
    for lang in ("en", "de"):
        for number, name in enumerate(("test", "test1")):
            expected = (out / f"raw/{name}.{lang}").read_text().split("\n")[:-1]
            assert len(expected) == (20, 2)[number]
            assert binarized_text(out, "en-de", name, lang, "sentencepiece") == expected
    names = {"data-bin", "manifest.json", "raw", "sentencepiece.model"}
    assert {path.name for path in out.iterdir()} == names


@pytest.mark.parametrize("options", [["--raw-text"], ["--bpe", "subword-nmt"]])
def test_prepare_needs_neither_fairseq_nor_torch(tmp_path, corpus, options):
    words = [*corpus(), *options, "--vocab-size", 200, "--out", tmp_path / "out"]
    python(MAIN, "prepare", "text", *words, without=["fairseq", "torch"])
    made = {path.name for path in (tmp_path / "out/data-bin").iterdir()}
    assert {"dict.en.txt", "train.en-de.de.bin", "test.en-de.en.idx"} <= made


@pytest.mark.slow
def test_tatoeba_recipe_prepares_data_and_its_printed_command_trains(tmp_path, data):
    table = data / "tatoeba_en_de/deu-eng.zip"
    words = ["-m", "recipes.tatoeba_en_de.prepare", "--table", table, "--out", tmp_path / "out"]
    lines = run(sys.executable, *words, cwd=ROOT).stdout.strip().split("\n")
    readme = (ROOT / "recipes/tatoeba_en_de/README.md").read_text()
    for line in lines[:4]:
        assert line in readme
    for lang in ("en", "de"):
        expected = (tmp_path / f"out/raw/test.{lang}").read_text().split("\n")[:-1]
        assert len(expected) == 2000
        assert binarized_text(tmp_path / "out", "en-de", "test", lang, "sentencepiece") == expected
    program, *command = shlex.split(lines[-1])
    # a batch of the real size takes a minute on a small machine
    command += ["--max-update", "2", "--validate-interval-updates", "2", "--beam", "1"]
    run(SCRIPTS / program, *command, "--max-tokens", "500", cwd=tmp_path)


@pytest.mark.slow
def test_space_separated_words_work_in_all_commands(tmp_path, corpus):
    out = tmp_path / "out"
    prepare(*corpus(), "--bpe", "none", "--joined-dictionary", "--out", out)
    trained = tmp_path / "model"
    train = [SCRIPTS / "fairseq-train", out / "data-bin", *TINY.split(), "--arch", "transformer"]
    train += ["--max-tokens", 4000, "--max-update", 2, "--optimizer", "adam", "--lr", 0.001]
    train += ["--cpu", "--disable-validation", "--share-all-embeddings", "--save-dir", trained]
    run(*train)
    checkpoint = trained / "checkpoint_last.pt"
    # no --remove-bpe: an answer is words already
    generate = [SCRIPTS / "fairseq-generate", out / "data-bin", "--path", checkpoint, "--cpu"]
    lines = run(*generate, "--beam", 1, "--max-len-b", 5).stdout.split("\n")
    found, tokens = (
        dict(line.split("\t")[::2] for line in lines if line.startswith(kind))
        for kind in ("D-", "H-")
    )
    assert len(found) == 20
    assert found == {f"D-{number[2:]}": text for number, text in tokens.items()}
    source = (tmp_path / "input/test.en").read_text()
    run(*HYPTRANS, "export", checkpoint, "--data", out, "--out", tmp_path / "shared")
    translated, shared = (
        run(*HYPTRANS, "translate", *model, "--beam", 1, input=source).stdout
        for model in ([checkpoint, "--data", out], [tmp_path / "shared"])
    )
    assert shared == translated
    assert "@@" not in translated
    assert set(translated.split()) <= {*(out / "data-bin/dict.de.txt").read_text().split()}
