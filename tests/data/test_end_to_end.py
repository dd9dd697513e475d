"""The commands as a user types them, with the real fairseq behind them."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

from hyptrans.data import subwords
from tests.data.conftest import REPOSITORY, script, write

BIN = Path(sys.executable).parent
TINY = "--encoder-embed-dim 8 --decoder-embed-dim 8 --encoder-ffn-embed-dim 8 "
TINY += "--decoder-ffn-embed-dim 8 --encoder-layers 1 --decoder-layers 1 "
TINY += "--encoder-attention-heads 1 --decoder-attention-heads 1"


def binarized_text(out, pair, name, lang, kind):
    """The text of a set as the binary files and the dictionary give it back."""
    dictionary = Dictionary.load(str(out / f"data-bin/dict.{lang}.txt"))
    prefix = out / f"data-bin/{name}.{pair}.{lang}"
    dataset = data_utils.load_indexed_dataset(str(prefix), dictionary, "mmap")
    return [subwords.decode(kind, dictionary.string(tokens)) for tokens in dataset]


def succeeds(*words, **more):
    """Run a program to its end."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def train(out, *options, save=None):
    """Two updates of a tiny model; fairseq's own words on failure."""
    command = [BIN / "fairseq-train", out / "data-bin", *TINY.split(), "--arch"]
    command += ["transformer", "--max-tokens", "4000", "--max-update", "2", "--optimizer", "adam"]
    command += ["--lr", "0.001", "--cpu", "--disable-validation", *options]
    command += ["--save-dir", save] if save else ["--no-save"]
    succeeds(*command, cwd=out)


def prepare(name, *words):
    return succeeds(*script(name), *words)


def test_binary_files_decode_to_the_raw_text(tmp_path, corpus):
    out = tmp_path / "out"
    lines = ["  two  spaces ", "<pad> </s>"]
    odd = [write(tmp_path / f"odd.{lang}.gz", lines) for lang in ("en", "de")]
    words = [*corpus(), "--train", *odd, "--test", *odd, "--raw-text", "--vocab-size", 200]
    *_, last = prepare("text", *words, "--out", out).splitlines()
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
    code = "import sys; sys.modules['fairseq'] = sys.modules['torch'] = None; "
    code += "from hyptrans.commands.cli import main; sys.exit(main())"
    words = [*corpus(), *options, "--vocab-size", 200, "--out", tmp_path / "out"]
    succeeds(sys.executable, "-c", code, "prepare", "text", *words)
    made = {path.name for path in (tmp_path / "out/data-bin").iterdir()}
    assert {"dict.en.txt", "train.en-de.de.bin", "test.en-de.en.idx"} <= made


@pytest.mark.slow
def test_tatoeba_recipe_prepares_data_and_its_printed_command_trains(tmp_path, data):
    table = data / "tatoeba_en_de/deu-eng.zip"
    words = ["-m", "recipes.tatoeba_en_de.prepare", "--table", table, "--out", tmp_path / "out"]
    lines = succeeds(sys.executable, *words, cwd=REPOSITORY).strip().split("\n")
    readme = (REPOSITORY / "recipes/tatoeba_en_de/README.md").read_text()
    for line in lines[:4]:
        assert line in readme
    for lang in ("en", "de"):
        expected = (tmp_path / f"out/raw/test.{lang}").read_text().split("\n")[:-1]
        assert len(expected) == 2000
        assert binarized_text(tmp_path / "out", "en-de", "test", lang, "sentencepiece") == expected
    program, *command = shlex.split(lines[-1])
    # a batch of the real size takes a minute on a small machine
    command += ["--max-update", "2", "--validate-interval-updates", "2", "--beam", "1"]
    succeeds(BIN / program, *command, "--max-tokens", "500", cwd=tmp_path)


@pytest.mark.slow
def test_space_separated_words_work_in_all_commands(tmp_path, corpus):
    out = tmp_path / "out"
    prepare("text", *corpus(), "--bpe", "none", "--joined-dictionary", "--out", out)
    trained = tmp_path / "model"
    train(out, "--share-all-embeddings", save=trained)
    checkpoint = trained / "checkpoint_last.pt"
    # no --remove-bpe: an answer is words already
    generated = succeeds(
        *(BIN / "fairseq-generate", out / "data-bin", "--path", checkpoint),
        *("--beam", 1, "--max-len-b", 5, "--cpu"),
    )
    found = dict(line.split("\t")[::2] for line in generated.split("\n") if line[:2] == "D-")
    tokens = dict(line.split("\t")[::2] for line in generated.split("\n") if line[:2] == "H-")
    assert len(found) == 20
    assert found == {f"D-{number[2:]}": text for number, text in tokens.items()}
    source = (tmp_path / "input/test.en").read_text()
    hyptrans = [sys.executable, "-m", "hyptrans"]
    succeeds(*hyptrans, "export", checkpoint, "--data", out, "--out", tmp_path / "shared")
    options = ["--beam", 1]
    words = ["translate", checkpoint, "--data", out]
    translated = succeeds(*hyptrans, *words, *options, input=source)
    shared = succeeds(*hyptrans, "translate", tmp_path / "shared", *options, input=source)
    assert shared == translated
    assert "@@" not in translated
    assert set(translated.split()) <= {*(out / "data-bin/dict.de.txt").read_text().split()}
