"""Each option of the commands that read checkpoints is obeyed, refused, or has its reason."""

import argparse
import functools
import importlib
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback
import zlib

import pytest

from hyptrans_startup.errors import UserError
from tests.forks import ROOT
from tests.startup.commands import asked
from tests.startup.commands.asked import OBEYED, ROWS, flag, rows
from tests.startup.conftest import TINY

SEARCHES = ("generate", "interactive")
CHOSEN = ["--bpe=sentencepiece", "--scoring=sacrebleu", "--tokenizer=moses"]
"""Names whose own options are asked of, too."""
NAMES = ("task", "criterion", "optimizer", "lr_scheduler", "scoring", "bpe", "tokenizer")
NAMES += ("dataset_impl", "ddp_backend", "ddp_comm_hook", "zero_sharding", "pipeline_checkpoint")
"""Options whose values are names of what is registered, or of kinds."""
FETCHING = {"bert", "gpt2"}
"""Of kinds of subwords, those whose files fairseq fetches."""
LOGGED = ["--log-format=simple", "--log-interval=1"]
LIMIT = 100
"""Seconds."""
TIMES = re.compile(
    r"^[\d-]+ [\d:]+|[\d.,]+s\b|[\d.,]+ (sentences|tokens)/s|^(W-|Total time).*", re.MULTILINE
)


@functools.cache
def parser_of(command, chosen=True):
    """The parser of a command as it is registered, with the options that chosen names bring."""
    from fairseq import options

    if command == "score":
        return importlib.import_module("fairseq_cli.score").get_parser()
    name = {"generate": "generation", "interactive": "interactive_generation"}.get(command)
    name = {"train": "training", "validate": "validation"}.get(command, name)
    if command == "preprocess":
        return options.get_preprocessing_parser()
    parser = getattr(options, f"get_{name}_parser")()
    words = ["bin", *(TINY if command == "train" else ["--path=x"])]
    options.parse_args_and_arch(
        parser, [*words, *(CHOSEN if chosen and command in SEARCHES else [])]
    )
    return parser


def options_of(command, **chosen):
    return [
        each
        for each in parser_of(command, **chosen)._actions
        if each.option_strings and each.dest != "help"
    ]


@pytest.fixture(scope="module")
def ask(work, checkpoint):
    """Run a command in a fork; returns its exit status, and its output without times."""
    (work / "lower.de").write_text((work / "test.de").read_text().lower())
    lines = (work / "test.de").read_text().splitlines(keepends=True)
    (work / "system.de").write_text("".join([lines[0], *lines[2:], lines[1]]))
    (work / "lines").write_text("a b\tB\nh g f\nb a a\n")
    path = checkpoint.relative_to(work)
    search = ["bin", f"--path={path}", "--cpu", "--max-len-b=8"]
    usual = {
        "generate": [*search, "--max-sentences=12", "--num-workers=0"],
        "interactive": search,
        "validate": ["bin", f"--path={path}", "--cpu", "--max-sentences=12", "--num-workers=0"],
        "preprocess": ["-s=en", "-t=de", "--trainpref=train", "--destdir=pre"],
        "score": ["--sys=system.de", "--ref=test.de"],
        "train": ["bin", *TINY, "--max-update=2", "--no-save", "--num-workers=0", *LOGGED],
    }

    @functools.cache
    def ask(command, *words):
        main = importlib.import_module(f"fairseq_cli.{command}").cli_main
        for folder in ("pre", "other"):
            shutil.rmtree(work / folder, ignore_errors=True)
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            child = os.fork()
            if child == 0:
                signal.alarm(LIMIT)
                os.chdir(work)
                os.dup2(os.open("lines", os.O_RDONLY), 0)
                for number in (1, 2):
                    os.dup2(output.fileno(), number)
                sys.stdin, sys.stdout, sys.stderr = (
                    open(number, "rw"[number > 0], encoding="utf-8", closefd=False)  # noqa: SIM115
                    for number in range(3)
                )
                logging.basicConfig(
                    stream=sys.stdout, level="INFO", format="%(message)s", force=True
                )
                os._exit(become(main, [f"fairseq-{command}", *usual[command], *words]))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            output.seek(0)
            own = re.compile(r"(?!fairseq-).*('_name'|Namespace)")
            shown = [line for line in output if not own.match(line)]
        made = sorted(work.glob("pre/[!p]*"))  # but preprocess.log
        files = [f"{path.name} {zlib.crc32(path.read_bytes())}\n" for path in made]
        return status, TIMES.sub("", "".join([*files, *shown]))

    return ask


def become(main, words):
    """Run a command in this process; returns the exit status."""
    status = 0
    sys.argv = words
    try:
        main()
    except SystemExit as end:
        status = 1 if isinstance(end.code, str) else end.code or 0
        sys.stderr.write(f"{end.code}\n" if isinstance(end.code, str) else "")
    except BaseException:
        status = 1
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


@pytest.mark.parametrize("command", [name for name in ROWS if name != "train"])
def test_every_option_has_a_row_or_a_reason(command):
    known = {flag(words) for words, _ in rows(command)}
    reasons = set() if command == "score" else {*map(flag, asked.without_effect())}
    missing = [
        each.option_strings
        for each in options_of(command)
        if not {*each.option_strings} & (known | reasons)
    ]
    assert missing == []
    # and none has a row that there is not
    assert known <= {name for each in options_of(command) for name in each.option_strings}


def test_every_option_of_a_training_that_a_page_or_recipe_names_has_a_row():
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("recipes/**/*.*")]
    pages = [path for path in files if path.suffix in (".md", ".py", ".ini", ".sh")]
    named = {word for path in pages for word in re.findall(r"(?<![\w-])-[\w-]+", path.read_text())}
    known = {flag(words) for words, _ in rows("train")} | {*asked.OF_FILES.split()}
    options = [{*each.option_strings} for each in options_of("train")]
    assert [each for each in options if each & named and not each & known] == []


@pytest.mark.parametrize("command", ROWS)
def test_what_takes_a_value_has_an_ordinary_and_an_odd_one(command):
    found = {}
    for words, outcome in rows(command):
        found.setdefault(flag(words), []).append(outcome)
    for each in options_of(command):
        outcomes = [outcome for name in each.option_strings for outcome in found.get(name, ())]
        if OBEYED in outcomes and (each.type in (int, float) or each.choices):
            assert len({*outcomes}) > 1, each.option_strings
        if command not in ("score", "preprocess") and (each.type in (int, float) or each.choices):
            with pytest.raises(UserError, match="nope"):
                parser_of(command).parse_args(["bin", f"{each.option_strings[0]}=nope"])


def cases(*commands):
    return [
        pytest.param(command, *row, id=f"{command} {row[0]}")
        for command in commands
        for row in rows(command)
    ]


def check(ask, command, words, outcome):
    status, shown = ask(command, *words.split())
    assert "Traceback" not in shown
    if outcome == OBEYED:
        assert status == 0, shown[-300:]
        assert ask(command, *words.split()[1:])[1] != shown
        return
    # what a line that is typed is told ends nothing
    assert (status != 0) == ("left out" not in outcome)
    last = shown.strip().splitlines()[-1]
    assert last.startswith(f"fairseq-{command}: error: ") or status == 0
    assert outcome in (last if status else shown)


@pytest.mark.parametrize(("command", "words", "outcome"), cases("score"))
def test_score_obeys_or_refuses(command, words, outcome, ask):
    check(ask, command, words, outcome)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "words", "outcome"), cases(*SEARCHES, "validate", "train", "preprocess")
)
def test_it_obeys_or_refuses(command, words, outcome, ask):
    check(ask, command, words, outcome)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["generate", "validate", "train"])
@pytest.mark.parametrize("dest", NAMES)
def test_every_name_that_can_be_chosen_is_obeyed_or_refused(command, dest, ask):
    (option,) = (each for each in options_of(command, chosen=False) if each.dest == dest)
    for name in sorted(set(option.choices) - FETCHING):
        status, shown = ask(command, f"{option.option_strings[0]}={name}")
        assert "Traceback" not in shown, name
        last = shown.strip().splitlines()[-1]
        assert status == 0 or last.startswith(f"fairseq-{command}: error: "), name


@pytest.mark.parametrize("command", [*SEARCHES, "validate"])
def test_what_has_a_reason_changes_nothing(command, ask):
    """All options at once that are said to do nothing."""
    changing = {flag(words) for words, _ in rows(command)}
    options = options_of(command, chosen=False)
    own = {name: each for each in options for name in each.option_strings}
    words = []
    for word in asked.without_effect():
        name, _, value = word.partition("=")
        if name in own and not {*own[name].option_strings} & changing:
            words.append(word if value or own[name].nargs == 0 else f"{name}={usual(own[name])}")
    assert len(words) > 80
    assert ask(command, *words)[1] == ask(command)[1]


def usual(option: argparse.Action):
    """An ordinary value."""
    if option.choices:
        return option.default or next(iter(option.choices))
    return {int: 3, float: 0.5}.get(option.type, "nope")


def test_results_of_an_earlier_run_outlast_what_is_refused(ask, work):
    kept = work / "kept" / "generate-test.txt"
    kept.parent.mkdir()
    kept.write_text("of an earlier run")
    assert ask("generate", "--results-path=kept", "--print-step")[0] != 0
    assert kept.read_text() == "of an earlier run"


def test_shards_divide_the_set(ask):
    words = ["--max-sentences=4", "--num-shards=2"]
    shares = [
        {*re.findall(r"^H-(\d+)\t", ask("generate", *words, f"--shard-id={i}")[1], re.MULTILINE)}
        for i in range(2)
    ]
    assert set.union(*shares) == {*map(str, range(12))}
    assert sorted(map(len, shares)) == [4, 8]


def test_sentences_are_scored_one_by_one(ask):
    shown = ask("score", "--sentence-bleu")[1]
    assert len(re.findall(r"^\d+ BLEU4 = ", shown, re.MULTILINE)) == 12


def test_standard_input_of_unequal_length_is_not_scored(ask):
    assert "standard input has 3 lines and test.de has 12" in ask("score", "--sys=-")[1]
