"""Every option of every command, with values that it cannot have: a sentence that names them."""

import shutil

import pytest

from hyptrans.commands.cli import PROGRAM
from hyptrans.data import indexed
from tests.commands.conftest import typed
from tests.inference.conftest import export
from tests.probing.commands.conftest import made  # noqa: F401
from tests.probing.commands.runs import run_words

NUMBERS = ["nope", "-1", "0", "nan", "1e999"]
PLACE = "no/such/place"
TAKEN = {
    "--seed=0": "a seed as any other",
    "--port=0": "any port that is free",
    "--lenpen=0": "log-probabilities are not divided by the length",
    "--lenpen=-1": "nor is this: translations that are long are preferred less",
    "--weight-decay=0": "no penalty",
    "--probe-steps=0": "no probes",
    "--patience=0": "a training never stops early",
    "--warmup-updates=0": "the first rate is the highest",
    "--lr=0": "nothing is learned",
    "--label-smoothing=0": "plain cross entropy",
    "--clip-norm=0": "gradients are not clipped",
}
"""What is odd and means something, and what."""
WORDS = {"--out", "--dataset", "--license", "--name", "--names", "--language"}
WORDS |= {"--prefix"}
"""Options whose words are only shown, or name what is written, which other tests are of."""


def commands():
    """The programs, by the names of their commands."""
    programs = {"": PROGRAM} | {f"{name} ": PROGRAM.within(name) for name in PROGRAM.programs}
    return {
        f"{name}{each}": program for name, program in programs.items() for each in program.commands
    }


@pytest.fixture(scope="module")
def ordinary(made, tmp_path_factory):  # noqa: F811
    """A folder, and what is typed of each command there."""
    folder = tmp_path_factory.mktemp("typed")
    checkpoint = made / "twin" / "checkpoint_best.pt"
    model = export(checkpoint, folder / "model", data=made / "data")
    shutil.copy(checkpoint, folder / "crash.pt")
    (folder / "a").write_text("Ein Hund.\nDas ist gut.\n")
    source = [f"--checkpoint={checkpoint}", f"--data={made / 'data'}"]
    whole = shutil.copytree(made / "data", folder / "data")
    for lang in ("en", "de"):
        indexed.write([b"\4\0\2\0"] * 3, "<u2", whole / "data-bin" / f"valid.en-de.{lang}")
    pairs = [word for name in ("train", "valid", "test") for word in (f"--{name}", "a", "a")]
    return folder, {
        "train": [str(made / "data"), "--arch=hybonet_tiny", "--out=run-of-train"],
        "translate": [str(checkpoint), source[1]],
        "serve": [str(model), "--port=0"],
        "score": ["a", "a"],
        "info": [str(checkpoint), source[1]],
        "average": [str(made / "twin"), "--out=average.pt"],
        "export": [str(checkpoint), source[1], "--out=exported"],
        "push": [str(model), "nobody"],
        "compare": ["a", "a", "a"],
        "plot": ["a"],
        "prepare text": [*pairs, "--source-lang=en", "--target-lang=de", "--out=text"],
        "prepare iwslt14": ["--raw=.", "--out=iwslt14"],
        "prepare wmt14": ["--raw=.", "--out=wmt14"],
        "prepare toy": ["--out=toy"],
        "probe annotate": ["--text=a", "--stanza-dir=none", "--out=annotated"],
        "probe geometry": [*source, f"--data={whole}"],
        "probe run": run_words(made, folder / "run")[1:],
    }


def odd_values(option):
    """Return odd values that an option should refuse."""
    if option.choices:
        return ["nope"]
    try:
        (option.type or str)("nope")
    except Exception:
        return NUMBERS
    return [PLACE]


@pytest.mark.parametrize("name", commands())
def test_error_states_the_allowed_values_of_an_option(name, ordinary, monkeypatch, capsys):
    folder, words = ordinary
    monkeypatch.chdir(folder)
    wrong = {}
    for option in commands()[name].parser(name.split()[-1])[0]._actions:
        if not option.option_strings or option.nargs == 0 or WORDS & {*option.option_strings}:
            continue
        flag = option.option_strings[-1]
        for value in odd_values(option):
            if f"{flag}={value}" in TAKEN:
                continue
            typed(monkeypatch, b"a dog\n")
            capsys.readouterr()
            given = [*name.split(), *map(str, words[name]), f"{flag}={value}"]
            last = sentence(PROGRAM.run, given, capsys)
            told = [flag.lstrip("-"), *([PLACE] if value == PLACE else [])]
            if not any(word in last for word in told):
                wrong[f"{flag}={value}"] = last
    assert wrong == {}


def sentence(run, words, capsys):
    """The last line that a command writes where it is refused, else what came of it."""
    try:
        status = run(words)
    except SystemExit as end:
        status = end.code
    last = (["", *capsys.readouterr().err.splitlines()])[-1]
    return last if status == 2 and "error: " in last else f"{status}: {last}"
