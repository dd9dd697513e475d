"""A stored configuration is data: checked, bounded, and never a program."""

import argparse
import sys
import threading
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from hyptrans_startup.errors import UserError
from hyptrans_startup.guards.building import within, within_bytes
from hyptrans_startup.guards.configurations import check_checkpoint, check_configuration
from tests.hostile import checkpoints

EXPRESSION = "[open('RAN', 'w').close(), None][1]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture
def state(folder):
    return checkpoints.stored("euclidean_tiny", folder)


@pytest.mark.parametrize("use", ["build", "extract"])
@pytest.mark.parametrize("option", ["xformers_att_config", "adaptive_softmax_cutoff"])
def test_option_that_fairseq_evaluates_runs_nothing(option, use, state, folder, monkeypatch):
    monkeypatch.chdir(folder)
    changed = checkpoints.with_option(state, "model", option, EXPRESSION)
    path = checkpoints.written(changed, folder / "c.pt")
    with pytest.raises(UserError, match=r"c\.pt.* refused: fairseq would evaluate it"):
        checkpoints.build(path) if use == "build" else checkpoints.extract(path, folder / "data")
    assert not (folder / "RAN").exists()


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_ordinary_checkpoint_is_loaded(options, state, folder):
    from fairseq.checkpoint_utils import load_model_ensemble_and_task

    path = checkpoints.written(state, folder / "ordinary.pt", **options)
    (model,), cfg, _ = load_model_ensemble_and_task([str(path)])
    assert cfg.model.encoder_layers == 2
    for name in ("encoder.embed_tokens.weight", "decoder.layers.1.fc2.bias"):
        assert torch.equal(model.state_dict()[name], state["model"][name])


@pytest.mark.parametrize("use", ["build", "extract"])
def test_file_that_a_model_began_with_is_not_read(use, state, folder):
    changed = checkpoints.with_option(state, "model", "encoder_embed_path", str(folder / "none"))
    path = checkpoints.written(changed, folder / "embedded.pt")
    if use == "build":
        checkpoints.build(path)
    else:
        checkpoints.extract(path, folder / "data")


def test_nothing_of_the_environment_is_filled_in(state, folder, monkeypatch):
    monkeypatch.setenv("SECRET", "hunter2")
    changed = checkpoints.with_option(state, "task", "source_lang", "${env:SECRET}")
    path = checkpoints.written(changed, folder / "env.pt")
    with pytest.raises(UserError, match="stored configurations have none") as caught:
        checkpoints.build(path)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("encoder_layers", 10_000_000, "models have from"),
        ("encoder_layers", "10000000", "models have from"),
        ("encoder_layers", 900, "far larger model"),
        ("decoder_attention_heads", 0, "models have from"),
        ("encoder_embed_dim", 10**9, "models have from"),
        ("max_source_positions", 500_000, "positions of"),
        ("dropout", float("nan"), "models have from"),
        ("encoder_embed_dim", "x", "of another type"),
        ("encoder_learned_pos", {"a": 1}, "of another type"),
        ("_name", "../../x", "no registered name"),
    ],
)
def test_option_out_of_bounds_is_refused(option, value, reason, state, folder):
    changed = checkpoints.with_option(state, "model", option, value)
    path = checkpoints.written(changed, folder / "sizes.pt")
    with pytest.raises(UserError, match=reason):
        checkpoints.build(path)


def test_positions_may_be_as_many_as_are_stored():
    options = {"model": {"max_source_positions": 2_000_000, "encoder_embed_dim": 16}}
    check_checkpoint(
        {"cfg": options, "model": {"table": torch.empty(2_000_002, 16, dtype=torch.float16)}}
    )
    # few numbers under many names are none
    repeated = torch.empty(1).expand(2_000_002, 16)
    with pytest.raises(UserError, match="ask for 2000000 positions of 16 numbers"):
        check_checkpoint({"cfg": options, "model": {"table": repeated}})


def test_model_that_cannot_be_built_is_named_with_its_file(state, folder):
    changed = checkpoints.with_option(state, "model", "decoder_attention_heads", 3)
    path = checkpoints.written(changed, folder / "heads.pt")
    with pytest.raises(
        UserError, match=r"^checkpoint \S*heads\.pt cannot be used: no model can be"
    ):
        checkpoints.build(path)


@pytest.mark.parametrize("group", ["cfg", "extra_state", "task_state"])
def test_list_in_itself_is_refused(group, state):
    inner = []
    inner.append(inner)
    deep = [1]
    for _ in range(40):
        deep = [deep, deep]
    for hostile in (inner, deep):
        with pytest.raises(UserError, match="without end"):
            check_checkpoint({**state, group: {**state[group], "x": hostile}})


def test_json_inside_an_option_is_bounded(state):
    args = {"eval_bleu_args": '{"beam": 1000000000}'}
    with pytest.raises(UserError, match="beam is 1000000000"):
        check_configuration({"task": {"_name": "translation", **args}}, "cfg")


def test_options_of_older_releases_are_checked_too():
    with pytest.raises(UserError, match="no registered name"):
        check_configuration(Namespace(arch="transformer", bpe="../../x"), "args")


def test_hooks_of_building_are_gone_afterwards(tmp_path):
    path = tmp_path / "c.pt"
    path.write_bytes(bytes(10))
    with pytest.raises(UserError, match="far larger model"), within(path):
        torch.nn.Linear(9000, 9000)
    torch.nn.Linear(9000, 9000)


@pytest.mark.slow
def test_options_of_every_architecture_are_taken():
    from fairseq import models, options

    import hyptrans.models  # noqa: F401 - registers its own

    checked = 0
    for arch in sorted(models.ARCH_MODEL_REGISTRY):
        task = ["--task=language_modeling"] if "lm" in arch else []
        try:
            args = options.parse_args_and_arch(
                options.get_training_parser(), ["data", "--arch", arch, *task]
            )
        except (SystemExit, argparse.ArgumentError):
            continue  # it needs a task of its own
        check_configuration(args, "args")
        checked += 1
    assert checked > 150


def test_what_another_thread_builds_is_not_counted():
    built = []

    def large():
        built.append(torch.nn.Linear(1 << 13, 1 << 13))

    with within_bytes(10), pytest.raises(UserError, match="a far larger model"):
        large()
    with within_bytes(10):
        thread = threading.Thread(target=large)
        thread.start()
        thread.join()
    assert len(built) == 1


def test_models_are_built_in_several_threads_at_once():
    def build(_):
        with within_bytes(1 << 20):
            torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(20)))
        with within_bytes(1), pytest.raises(UserError, match="a far larger model"):
            torch.nn.Linear(1 << 13, 1 << 13)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(build, range(200)))
    finally:
        sys.setswitchinterval(interval)
