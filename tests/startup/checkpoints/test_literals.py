"""Strings that fairseq evaluates, imports or looks up: what they are, and that each is guarded."""

import ast
import importlib.util
from pathlib import Path

import pytest

from hyptrans_startup import STEPS
from hyptrans_startup.checkpoints.literals import literal
from hyptrans_startup.errors import UserError

GUARDED = {name for name, steps in STEPS.items() if "checkpoints.literals:" in steps[0]}
EVALUATES = {"eval", "exec", "compile", "__import__"}
BY_NAME = {"getattr", "setattr", "import_module", "globals"}

# calls that take a name which is not written in the code, by file; what none of them is: a string
# of a configuration that becomes code
HARMLESS = {
    # every file of a folder of fairseq
    "fairseq/criterions/__init__.py": ["import_module"],
    "fairseq/data/audio/feature_transforms/__init__.py": ["import_module"],
    "fairseq/data/encoders/__init__.py": ["import_module"],
    "fairseq/model_parallel/criterions/__init__.py": ["import_module"],
    "fairseq/model_parallel/models/__init__.py": ["import_module"],
    "fairseq/models/__init__.py": ["globals", "import_module"],
    "fairseq/models/ema/__init__.py": ["import_module"],
    "fairseq/models/huggingface/__init__.py": ["import_module"],
    "fairseq/optim/__init__.py": ["import_module"],
    "fairseq/optim/lr_scheduler/__init__.py": ["import_module"],
    "fairseq/scoring/__init__.py": ["import_module"],
    "fairseq/tasks/__init__.py": ["globals", "import_module"],
    # --user-dir, from the command line alone; stored ones are not imported
    "fairseq/utils.py": ["eval"] * 3 + ["getattr"] * 2 + ["import_module", "setattr"],
    # the name of a statistic's class, guarded by `check_progress`
    "fairseq/logging/meters.py": ["globals"],
    # attributes of options, named by fields or by other options
    "fairseq/checkpoint_utils.py": ["setattr"],
    "fairseq/criterions/fairseq_criterion.py": ["getattr"],
    "fairseq/dataclass/configs.py": ["getattr"] * 5 + ["setattr"],
    "fairseq/dataclass/utils.py": ["getattr"] * 2 + ["setattr"] * 3,
    "fairseq/hub_utils.py": ["getattr"] * 2 + ["setattr"],
    "fairseq/models/roberta/enc_dec.py": ["getattr", "setattr"],
    "fairseq/models/speech_to_text/xm_transformer.py": ["getattr"] * 2 + ["setattr"],
    "fairseq/models/transformer/transformer_config.py": ["setattr"] * 5,
    "fairseq/options.py": ["getattr", "setattr"],
    "fairseq/registry.py": ["getattr"] * 2,
    # a member of an enumeration; a function of torch whose name ends in _window
    "fairseq/models/text_to_speech/vocoder.py": ["getattr"],
    "fairseq/tasks/audio_finetuning.py": ["getattr"],
    "fairseq/tasks/audio_pretraining.py": ["getattr"],
    # parts of modules and data sets, named in the code that calls
    "fairseq/data/concat_dataset.py": ["getattr"],
    "fairseq/data/fairseq_dataset.py": ["getattr"],
    "fairseq/distributed/distributed_timeout_wrapper.py": ["getattr"],
    "fairseq/distributed/module_proxy_wrapper.py": ["getattr"] * 2,
    "fairseq/model_parallel/models/pipeline_parallel_transformer/model.py": ["getattr"] * 2,
    "fairseq/models/speech_to_speech/s2s_transformer.py": ["getattr", "setattr"],
    "fairseq/modules/quantization/pq/utils.py": ["getattr"] * 2 + ["setattr"],
    "fairseq/modules/quantization/scalar/ops.py": ["globals"],
    "fairseq/nan_detector.py": ["setattr"],
    "fairseq/optim/shard.py": ["getattr"],
    "fairseq/trainer.py": ["getattr"] * 2 + ["setattr"],
}

LITERALS = [
    *("[(512, 3)] * 9 + [(1024, 3)] * 4", "[(64, 3), (64, 2)]", "[True, False] * 3", "{'a': [1]}"),
    *("True", "None", "0.9, 0.98", " (0.9,0.98)", "1e-4", "1/1000", "-1", "1000,2000"),
]
OTHERS = [
    *("__import__('os').system('id')", "lambda: 1", "[x for x in [1]]", "f'{1}'", "a.b", "x"),
    *("[1] * 10**9", "[1] * 1000000000", "9 ** 9", "'a' * 10", "[1][0]", "1 if 1 else 2", "1/0"),
    *("-" * 3999 + "1", "(" * 99, "1," * 2000 + "1", "+".join("1" * 1900), "\0", "1 +", "[]+()"),
]


def site():
    return Path(importlib.util.find_spec("fairseq").origin).parents[1]


def calls_by_name(path):
    """Names of the functions that a file calls with a string that is not written there."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        named = isinstance(node.func, ast.Name)
        if named and name in EVALUATES:
            yield name
        elif name in BY_NAME:
            wanted = node.args[1:2] if name in ("getattr", "setattr") else node.args[:1]
            if name == "globals" or not isinstance(wanted[0], ast.Constant):
                yield name


def files_of_fairseq():
    for package in ("fairseq", "fairseq_cli"):
        for path in sorted((site() / package).rglob("*.py")):
            name = path.relative_to(site()).as_posix()
            if not name.startswith("fairseq/examples/"):
                yield name, path


def test_every_file_that_evaluates_strings_does_it_with_literals():
    evaluating = {
        name.removesuffix(".py").replace("/", ".")
        for name, path in files_of_fairseq()
        if EVALUATES & set(calls_by_name(path))
    }
    assert evaluating == GUARDED


def test_every_other_call_with_a_name_that_is_not_in_the_code_is_known():
    found = {}
    for name, path in files_of_fairseq():
        calls = sorted(calls_by_name(path))
        if set(calls) - EVALUATES:
            found[name] = calls
    assert found == HARMLESS


@pytest.mark.parametrize("module", sorted(GUARDED))
def test_module_of_fairseq_takes_literals_for_eval(module):
    if importlib.util.find_spec(module) is None:
        pytest.skip("not in this installation")
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        pytest.skip(str(error))
    found = vars(loaded)["eval"]
    assert getattr(found, "func", found) is literal


def test_an_utterance_of_a_manifest_may_be_as_long_as_speech_is():
    from fairseq.data import codedataset

    line = str({"audio": "a.wav", "hubert_km100": "71 12 " * 50_000})
    assert vars(codedataset)["eval"](line) == ast.literal_eval(line)
    with pytest.raises(UserError, match="write it out"):
        literal(line)
    with pytest.raises(UserError, match="write it out"):
        vars(codedataset)["eval"]("[" + "1, " * 400_000 + "]")
    with pytest.raises(UserError, match="at most 1048576 characters"):
        vars(codedataset)["eval"]("[" + "{}, " * 10_000 + "]")
    for text in ("1<" * 9_000 + "1", "''" * 9_000, '"' + "\\'" * 9_000 + '"'):
        with pytest.raises(UserError, match="at most 1048576 characters"):
            vars(codedataset)["eval"](text)


@pytest.mark.parametrize("text", LITERALS)
def test_literal_is_what_eval_gives(text):
    assert literal(text) == eval(text.strip(), {"__builtins__": {}})


@pytest.mark.parametrize("text", OTHERS)
def test_anything_else_is_refused_in_one_sentence(text):
    with pytest.raises(UserError, match="is refused: fairseq would evaluate it"):
        literal(text)


def test_no_string_is_a_type_error_as_from_eval():
    from fairseq import utils

    with pytest.raises(TypeError):
        literal(True)
    # fairseq counts on it
    assert utils.eval_bool(None, True) is True
    assert utils.eval_bool("1") is True
