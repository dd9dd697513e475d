"""Each option of generate, interactive and score is obeyed, or refused in one sentence."""

import re

import pytest


@pytest.fixture(scope="module")
def ask(work, checkpoint, fork):
    """Run a command that asks the checkpoint; returns the finished process."""

    def ask(command, *flags, check=True, stdin=None):
        return fork(
            f"fairseq-{command}",
            "bin",
            f"--path={checkpoint}",
            "--cpu",
            "--max-len-b=8",
            *flags,
            cwd=work,
            check=check,
            stdin=stdin,
        )

    return ask


def sentences(done):
    return {int(n) for n in re.findall(r"^H-(\d+)\t", done.stdout, re.MULTILINE)}


@pytest.mark.parametrize(
    ("command", "flags", "told"),
    [
        ("generate", ["--beam=0"], "--beam 0 keeps no hypothesis"),
        ("interactive", ["--beam=0"], "--beam 0 keeps no hypothesis"),
        ("generate", ["--beam=2", "--nbest=3"], "--nbest 3 must be between 1 and --beam, 2"),
        ("generate", ["--beam=3", "--diverse-beam-groups=2"], "2 do not divide --beam 3"),
        ("generate", ["--print-step"], "--print-step is for models that translate in several"),
        ("generate", ["--constraints"], "--constraints are read by fairseq-interactive"),
        ("generate", ["--sacrebleu"], "use --scoring sacrebleu"),
        ("generate", ["--num-shards=2", "--shard-id=2"], "--shard-id 2 must be from 0 to"),
        ("interactive", ["--num-shards=2"], "--num-shards is for fairseq-generate"),
        ("interactive", ["--print-alignment=soft"], "prints hard alignments alone"),
        (
            "generate",
            ["--bpe=sentencepiece", "--sentencepiece-model=m", "--remove-bpe=sentencepiece"],
            "leave one out",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_results_are_touched(command, flags, told, ask, work):
    kept = work / "kept" / "generate-test.txt"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("of an earlier run")
    done = ask(command, f"--results-path={kept.parent}", *flags, check=False, stdin="a b\n")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"fairseq-{command}: error: ")
    assert told in last
    assert kept.read_text() == "of an earlier run"


def test_shards_divide_the_set(ask):
    flags = ["--batch-size=4", "--num-shards=2"]
    shares = [sentences(ask("generate", *flags, f"--shard-id={i}")) for i in range(2)]
    assert set.union(*shares) == {*range(12)}
    assert sorted(map(len, shares)) == [4, 8]
    done = ask("generate", "--num-shards=3", "--shard-id=2", check=False)
    assert "shard 2 of 3 is empty" in done.stderr.strip().splitlines()[-1]


def test_a_scorer_without_its_package_is_named(ask, monkeypatch):
    done = ask("generate", "--scoring=wer", check=False)
    if done.returncode:
        assert "pip install editdistance" in done.stderr.strip().splitlines()[-1]


def test_sentences_are_scored_one_by_one(work, fork):
    done = fork("fairseq-score", "--sentence-bleu", "--sys=test.de", "--ref=test.de", cwd=work)
    assert len(re.findall(r"^\d+ BLEU4 = ", done.stdout, re.MULTILINE)) == 12


@pytest.mark.parametrize("system", ["--sys=train.de", None])
def test_texts_of_unequal_length_are_not_scored(system, work, fork):
    text = (work / "train.de").read_text()
    words = ["--ref=test.de", *([system] if system else [])]
    done = fork("fairseq-score", *words, cwd=work, check=False, stdin=text)
    assert done.returncode != 0
    assert re.search(r"has 60 lines and test\.de has 12", done.stderr)
