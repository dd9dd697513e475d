"""A stored configuration is data: checked, bounded, and never a program."""

import argparse
import contextlib
import math
import sys
import threading
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from hyptrans_startup.checkpoints import building, loading, schema
from hyptrans_startup.checkpoints.building import within_bytes
from hyptrans_startup.errors import UserError
from hyptrans_startup.training.progress import check_progress
from hyptrans_startup.training.resuming import check_optimizer
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
    checkpoints.build(path) if use == "build" else checkpoints.extract(path, folder / "data")
    assert not (folder / "RAN").exists()


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_ordinary_checkpoint_is_loaded(options, state, folder):
    from fairseq.checkpoint_utils import load_model_ensemble_and_task

    path = checkpoints.written(state, folder / "ordinary.pt", **options)
    (model,), cfg, _ = load_model_ensemble_and_task([str(path)])
    assert cfg.model.encoder_layers == 2
    for name in ("encoder.embed_tokens.weight", "decoder.layers.1.feed_forward.contract.bias"):
        assert torch.equal(model.state_dict()[name], state["model"][name])


@pytest.mark.parametrize("use", ["build", "extract"])
def test_file_that_a_model_began_with_is_not_read(use, state, folder):
    changed = checkpoints.with_option(state, "model", "encoder_embed_path", str(folder / "none"))
    path = checkpoints.written(changed, folder / "embedded.pt")
    if use == "build":
        checkpoints.build(path)
    else:
        checkpoints.extract(path, folder / "data")


def test_nothing_of_the_environment_is_filled_in(state):
    for group, name in (("task", "source_lang"), ("task", "data"), ("model", "dropout")):
        changed = checkpoints.with_option(state, group, name, "${env:SECRET}")
        with contextlib.suppress(UserError):
            assert "${" not in str(loading.taken(changed)["cfg"])


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("encoder_layers", 10_000_000, "models have from"),
        ("encoder_layers", "10000000", "models have from"),
        ("encoder_layers", 900, "far larger model"),
        ("decoder_attention_heads", 0, "models have from"),
        ("encoder_embed_dim", 10**9, "models have from"),
        ("max_source_positions", 500_000, "positions of"),
        ("max_source_positions", 500_000.0, "positions of"),
        ("dropout", float("nan"), "models have from"),
        ("encoder_embed_dim", "x", "of another type"),
        ("encoder_learned_pos", {"a": 1}, "of another type"),
    ],
)
def test_option_out_of_bounds_is_refused(option, value, reason, state, folder):
    changed = checkpoints.with_option(state, "model", option, value)
    path = checkpoints.written(changed, folder / "sizes.pt")
    with pytest.raises(UserError, match=reason):
        checkpoints.build(path)


def test_positions_may_be_as_many_as_are_stored():
    options = {"model": {"max_source_positions": 2_000_000, "encoder_embed_dim": 16}}
    loading.taken(
        {"cfg": options, "model": {"table": torch.empty(2_000_002, 16, dtype=torch.float16)}}
    )
    # few numbers under many names are none
    repeated = torch.empty(1, dtype=torch.float16).expand(2_000_002, 16)
    with pytest.raises(UserError, match="ask for 2000000 positions of 16 numbers"):
        loading.taken({"cfg": options, "model": {"table": repeated}})


def test_model_that_cannot_be_built_is_named_with_its_file(state, folder):
    changed = checkpoints.with_option(state, "model", "decoder_attention_heads", 3)
    path = checkpoints.written(changed, folder / "heads.pt")
    with pytest.raises(
        UserError, match=r"^checkpoint \S*heads\.pt cannot be used: no model can be"
    ):
        checkpoints.build(path)


@pytest.mark.parametrize(
    ("group", "options", "kept"),
    [
        ("task", {"_name": "translation", "eval_bleu_detok": "moses"}, True),
        ("task", {"_name": "translation", "eval_bleu_args": '{"beam": 5, "a": true}'}, True),
        ("task", {"_name": "translation", "eval_bleu_args": '{"file": "x"}'}, False),
        ("task", {"_name": "translation", "eval_bleu_args": "['/etc/passwd']"}, False),
        ("task", {"_name": "translation", "data": "/any/where"}, True),
        ("task", {"_name": "translation", "data": "${env:HOME}"}, False),
        ("task", {"_name": "translation", "data": "/a\x1b[31m"}, False),
        ("task", {"_name": "translation", "source_lang": "en-us"}, True),
        ("task", {"_name": "translation", "source_lang": "zh-Hans"}, True),
        ("task", {"_name": "translation", "source_lang": "../x"}, False),
        ("common", {"seed": 3, "fp16": True, "user_dir": "plugin"}, True),
        ("common", {"user_dir": "a/plugin"}, False),
        ("common", {"log_file": "x"}, False),
        ("common", {"tensorboard_logdir": "/home/x"}, False),
        ("common_eval", {"path": "x"}, False),
        ("checkpoint", {"restore_file": "x"}, False),
        ("distributed_training", {"distributed_init_method": "tcp://h:1"}, False),
        ("optimizer", {"_name": "adam", "adam_betas": "(0.9, 0.98)"}, True),
        ("optimizer", {"_name": "adam", "adam_betas": "open('x')"}, False),
        ("criterion", {"_name": "label_smoothed_cross_entropy", "label_smoothing": 0.1}, True),
        ("criterion", "cross_entropy", True),
        ("bpe", {"_name": "sentencepiece", "sentencepiece_model": "x"}, False),
    ],
)
def test_options_are_taken_as_declared_and_none_names_a_place(group, options, kept):
    found = schema.taken({group: options}, {})[group]
    if isinstance(options, dict):
        found = {name: found[name] for name in options}
    assert (found == options) is kept


@pytest.mark.parametrize(("name", "declared"), [("translation", False), ("nobody's", True)])
def test_option_that_nobody_declares_is_not_there(name, declared):
    # what is not registered, is not built
    found = schema.taken({"task": {"_name": name, "more": 1}}, {})["task"]
    assert ("more" in found) is declared


@pytest.mark.parametrize("wrap", [dict, lambda **options: Namespace(**options)])
def test_a_file_does_not_choose_what_opens_files(wrap, monkeypatch):
    ranking = "sentence_ranking"
    stored = wrap(_name=ranking, criterion=ranking, save_predictions="x")

    def chosen(typed, built=("criterion",)):
        return schema.taken({"criterion": stored}, typed, built)["criterion"]

    chosen({}, built=())
    with pytest.raises(UserError, match=f"the criterion {ranking}, which a file cannot choose"):
        chosen({})
    for typed, allowed in (({"criterion": ranking}, ""), ({}, f"x,{ranking}")):
        monkeypatch.setenv(schema.ALLOW, allowed)
        found = chosen(typed)
        options = found if isinstance(found, dict) else vars(found)
        assert options["_name"] == ranking
        assert options["save_predictions"] is None
    # another one that is typed goes before that of the file
    options = chosen({"criterion": "cross_entropy"})
    options = options if isinstance(options, dict) else vars(options)
    assert (options["_name"], "save_predictions" in options) == ("cross_entropy", False)


@pytest.mark.parametrize("name", ["language_modeling", "speech_to_text", "nosuch"])
def test_task_that_a_file_cannot_choose_is_not_set_up(name, state, folder):
    changed = checkpoints.with_option(state, "task", "_name", name)
    path = checkpoints.written(changed, folder / "task.pt")
    words = "is not known here" if name == "nosuch" else "which a file cannot choose"
    with pytest.raises(UserError, match=f"task {name},? {words}"):
        checkpoints.build(path)


@pytest.mark.parametrize("use", ["build", "extract"])
def test_checkpoint_of_an_architecture_that_is_not_imported_is_named(use, state, folder):
    changed = {**state, "cfg": {**state["cfg"], "model": {"_name": "nosuch", "arch": "nosuch"}}}
    path = checkpoints.written(changed, folder / "nosuch.pt")
    with pytest.raises(UserError, match=r"nosuch\.pt.* nosuch is .*--user-dir"):
        checkpoints.build(path) if use == "build" else checkpoints.extract(path, folder / "data")


def test_options_of_a_users_own_architecture_are_taken(monkeypatch):
    from fairseq import models

    class Own:
        @staticmethod
        def add_args(parser):
            parser.add_argument("--gate", default="open")
            parser.add_argument("--gate-layers", type=int)

    monkeypatch.setitem(models.ARCH_MODEL_REGISTRY, "own", Own)
    given = {"arch": "own", "gate": "shut", "gate_layers": 3, "other": 1, "gate_file": "x"}
    found = schema.taken({"model": Namespace(**given)}, {})["model"]
    assert vars(found) == {"_name": "own", "arch": "own", "gate": "shut", "gate_layers": 3}
    for value, reason in ((10_000, "models have from"), ("many", "of another type")):
        given["gate_layers"] = value
        with pytest.raises(UserError, match=reason):
            schema.taken({"model": Namespace(**given)}, {})


def test_languages_are_taken_whatever_task_has_them_and_files_are_not():
    flags = {"arch": "multilingual_transformer", "task": "multilingual_translation"}
    words = {"lang_pairs": ["en-de"], "lang_dict": "x"}
    given = Namespace(**flags, **words)
    found = schema.taken({"model": given, "task": given}, {})["model"]
    assert found.lang_pairs == ["en-de"]
    assert getattr(found, "lang_dict", None) is None


def test_json_inside_an_option_is_bounded():
    args = {"eval_bleu_args": '{"beam": 1000000000}'}
    with pytest.raises(UserError, match="beam is 1000000000"):
        schema.taken({"task": {"_name": "translation", **args}}, {})


def test_a_file_of_before_there_were_tasks_is_built_of_one_conversion(state, folder, monkeypatch):
    from fairseq import checkpoint_utils

    parts = [state["cfg"][group] for group in ("model", "task")]
    options = {k: v for part in parts for k, v in dict(getattr(part, "__dict__", part)).items()}
    options = {k: v for k, v in options.items() if k not in ("_name", "task")}
    older = {**state, "cfg": None, "args": Namespace(**options | {"arch": "euclidean_tiny"})}
    path = checkpoints.written(older, folder / "older.pt")
    convert, calls = checkpoint_utils.convert_namespace_to_omegaconf, []
    monkeypatch.setattr(
        checkpoint_utils,
        "convert_namespace_to_omegaconf",
        lambda args: calls.append(args) or convert(args),
    )
    (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(path)])
    assert len(calls) == 1
    assert task.cfg.data == state["cfg"]["task"]["data"]
    # what the conversion that is left out would have been
    assert vars(cfg.model) == vars(convert(calls[0]).model)
    for name in ("encoder.layers.0.attention.qkv.weight", "decoder.embed_tokens.weight"):
        assert torch.equal(model.state_dict()[name], state["model"][name]), name


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        ({"cfg": {}}, "names no model"),
        ({"cfg": {"model": {"_name": "transformer"}}}, "names no task"),
        ({"args": Namespace(task="translation", arch="a,${b}")}, "names no model"),
        ({"args": Namespace(arch="transformer_tiny")}, "name no data folder"),
    ],
)
def test_what_names_too_little_to_build_is_refused_before_it_is_converted(
    configuration, reason, state, folder
):
    path = checkpoints.written({**state, "cfg": None, **configuration}, folder / "little.pt")
    with pytest.raises(UserError, match=reason):
        checkpoints.build(path)


def test_options_of_older_releases_are_cut_down_too():
    older = {"arch": "transformer", "bpe": "../../x", "more": 1, "max_positions": 9}
    assert vars(schema.taken(Namespace(**older, criterion="ctc"), {})) == {
        "arch": "transformer",
        "bpe": None,
        "max_positions": 9,
        "criterion": "ctc",
    }


def test_memory_that_is_filled_before_it_is_registered_is_refused():
    with within_bytes(0):
        torch.randn(4, 4)
        table = torch.zeros(4, 1)
        # takes no memory
        assert table.expand(4, 10**9).shape == (4, 10**9)
        for make in (torch.randn, torch.empty, torch.zeros, torch.ones, torch.Tensor):
            with pytest.raises(UserError, match="far larger model"):
                make(1 << 14, 1 << 12)
    assert torch.empty(1 << 14, 1 << 12).numel() == 1 << 26


def progress(**changes):
    """A state to go on from, with some of its parts changed."""
    schedule = {"best": None, "last_epoch": 3}
    history = {"num_updates": 3, "lr_scheduler_state": changes.pop("schedule", schedule)}
    history |= {name: changes.pop(name) for name in ("num_updates",) if name in changes}
    values = {"val": torch.tensor(1.0), "sum": torch.arange(4), "count": 1, "round": None}
    extra = {
        "train_iterator": {"epoch": 1, "iterations_in_epoch": 0, "version": 2, "shuffle": True},
        "metrics": {"train": [(0, "loss", "AverageMeter", values)]},
        "previous_training_time": 0.5,
        "best": 1.5,
        "val_loss": None,
    }
    state = {"last_optimizer_state": {"param_groups": changes.pop("groups", [])}}
    return state | {"optimizer_history": [history], "extra_state": extra | changes}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"previous_training_time": torch.tensor(0.5), "best": torch.ones(1)}, ""),
        ({"previous_training_time": torch.ones(2)}, "previous_training_time is Tensor"),
        ({"previous_training_time": float("nan")}, "previous_training_time is nan"),
        ({"previous_training_time": "x"}, "previous_training_time is 'x'"),
        ({"previous_training_time": None}, "previous_training_time is None"),
        ({"train_iterator": {"epoch": 0}}, "epoch is 0"),
        ({"train_iterator": {"epoch": "x"}}, "epoch is 'x'"),
        ({"train_iterator": {"epoch": True}}, "epoch is True"),
        ({"train_iterator": {"epoch": 1, "iterations_in_epoch": 1 << 40}}, "iterations_in_epoch"),
        ({"train_iterator": {"epoch": 1, "version": "2"}}, "version is '2'"),
        ({"train_iterator": [1]}, "train_iterator is list"),
        ({"groups": [{"params": [0, torch.ones(2)]}]}, "a parameter's number is Tensor"),
        ({"num_updates": -1}, "num_updates is -1"),
        ({"num_updates": float("nan")}, "num_updates is nan"),
        ({"schedule": {"best": "x"}}, "best of the schedule is 'x'"),
        ({"schedule": [1]}, "lr_scheduler_state is list"),
        ({"best": "x"}, "best is 'x'"),
        ({"val_loss": [1.0]}, "val_loss is list"),
        ({"metrics": [1]}, "metrics is list"),
        ({"metrics": torch.ones(0)}, "metrics is Tensor"),
        ({"metrics": {"train": [1]}}, "a statistic is 1"),
        ({"metrics": {"train": [(0, "loss", "os", {})]}}, "is a 'os', which is no meter"),
        ({"metrics": {"train": [(0, [1], "AverageMeter", {})]}}, "the name of a statistic"),
        ({"metrics": {"train": [(0, "a", ["AverageMeter"], {})]}}, "which is no meter"),
        ({"metrics": {"train": [(0, "a", "MetersDict", {})]}}, "which is no meter"),
        ({"metrics": {"train": [("x", "a", "AverageMeter", {})]}}, "the place of a is 'x'"),
        ({"metrics": {"train": [(0, "a", "AverageMeter", {"sum": "x"})]}}, "sum of a is 'x'"),
    ],
)
def test_a_training_goes_on_from_counts_and_numbers(changes, reason):
    if not reason:
        check_progress(progress(**changes))
        return
    with pytest.raises(ValueError, match=reason):
        check_progress(progress(**changes))


def test_statistics_that_are_not_gone_on_with_are_not_looked_at():
    check_progress(progress(metrics=[1]), meters=False)


def stepped():
    parameter = torch.nn.Parameter(torch.ones(3, 4))
    optimizer = torch.optim.Adam([parameter])
    parameter.grad = torch.ones(3, 4)
    optimizer.step()
    return optimizer, optimizer.state[parameter]


def test_state_of_an_optimizer_is_of_its_parameters_and_options():
    optimizer, _ = stepped()
    check_optimizer(optimizer)
    for harm, reason in (
        (lambda o, s: s.update(exp_avg=torch.ones(3)), "exp_avg is of another shape"),
        (lambda o, s: s.update(exp_avg_sq=torch.ones(3, 2)), "exp_avg_sq is of another shape"),
        (lambda o, s: s.update(step="x"), "step is 'x'"),
        (lambda o, s: s.update(step=-1), "step is -1"),
        (lambda o, s: s.update(step=math.nan), "step is nan"),
        (lambda o, s: s.update(exp_avg=True), "exp_avg is True"),
        (lambda o, s: s.update(exp_avg=torch.ones(3, 4) * 1j), "exp_avg has complex numbers"),
        (lambda o, s: s.update(other=[1]), "other is list"),
        (lambda o, s: o.param_groups[0].update(betas="x"), "its option betas is 'x'"),
        (lambda o, s: o.param_groups[0].update(betas=(0.9, "x")), "its option betas is"),
        (lambda o, s: o.param_groups[0].update(lr="x"), "its option lr is 'x'"),
    ):
        optimizer, state = stepped()
        harm(optimizer, state)
        with pytest.raises(ValueError, match=reason):
            check_optimizer(optimizer)
    one, other = stepped(), stepped()
    del other[1]["exp_avg"]
    one[0].state.update(other[0].state)
    with pytest.raises(ValueError, match="exp_avg is 'not there'"):
        check_optimizer(one[0])
    optimizer, state = stepped()
    # of points, which have one norm
    state["exp_avg_sq"] = torch.ones(3, 1)
    check_optimizer(optimizer)


def test_moments_of_rows_and_columns_are_those_of_their_matrix():
    from fairseq.optim.adafactor import Adafactor

    parameters = [torch.nn.Parameter(torch.ones(shape)) for shape in ((3, 4), (5,), (2, 3, 4))]
    optimizer = Adafactor(parameters)
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    check_optimizer(optimizer)
    optimizer.state[parameters[2]]["exp_avg_sq_col"] = torch.ones(2, 3)
    with pytest.raises(ValueError, match="exp_avg_sq_col is of another shape"):
        check_optimizer(optimizer)


def test_what_is_built_may_be_as_large_as_what_is_read_meanwhile():
    with within_bytes(0):
        with pytest.raises(UserError, match="far larger model"):
            torch.empty(1 << 14, 1 << 11)
        building.read_too(1 << 26)
        torch.empty(1 << 14, 1 << 11)


def test_a_list_without_end_is_refused():
    with pytest.raises(UserError, match="update_freq has 10,001 entries"):
        schema.taken({"optimization": {"update_freq": [1] * 10_001}}, {})


def test_tensors_take_no_more_than_is_stored():
    stored = torch.ones(1 << 20)
    loading.taken({"last_optimizer_state": {"state": dict.fromkeys(range(8), stored)}})
    few = torch.ones(1)
    for much in (few.expand(1 << 28), [stored.view(1 << 10, 1 << 10) for _ in range(40)]):
        with pytest.raises(UserError, match="bytes, far more than it has"):
            loading.taken({"last_optimizer_state": {"state": {0: {"exp_avg": much}}}})


def test_hooks_of_building_are_gone_afterwards():
    with pytest.raises(UserError, match="far larger model"), within_bytes(10):
        torch.nn.Linear(9000, 9000)
    torch.nn.Linear(9000, 9000)


@pytest.mark.slow
def test_options_of_every_architecture_are_taken():
    from fairseq import models, options

    import hyptrans.fairseq  # noqa: F401 - registers its own

    checked = 0
    for arch in sorted(models.ARCH_MODEL_REGISTRY):
        task = ["--task=language_modeling"] if "lm" in arch else []
        try:
            args = options.parse_args_and_arch(
                options.get_training_parser(), ["data", "--arch", arch, *task]
            )
        except (SystemExit, argparse.ArgumentError):
            continue  # it needs a task of its own
        schema.taken(args, {})
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
