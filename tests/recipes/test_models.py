import copy
import functools
import itertools
import math
import re
import shlex

import pytest
import torch
from fairseq import models, options
from fairseq.models import ARCH_MODEL_REGISTRY

import recipes.study.candidates  # noqa: F401 - registers those that the study tries
from hyptrans.support.errors import UserError
from recipes.cogs import __main__ as cogs
from recipes.common import exact, results, settings
from recipes.common.settings import FILE, read_models
from recipes.scan import __main__ as scan
from recipes.slog import __main__ as slog
from recipes.study.table import chosen
from recipes.trees import __main__ as trees
from recipes.wordnet import __main__ as wordnet
from tests.models.conftest import task_of
from tests.recipes.scripts import RECIPES


def available(recipe):
    sections = re.findall(r"^\[(.+)\]$", (recipe / FILE).read_text(), flags=re.MULTILINE)
    return sorted({name for section in sections for name in section.split() if "*" not in name})


RECIPE_NAMES = sorted(path.parent.name for path in RECIPES.rglob(FILE))
CONFIGURATIONS = [(name, model) for name in RECIPE_NAMES for model in available(RECIPES / name)]
PAPERS = [pair for pair in CONFIGURATIONS if pair[0] in ("iwslt14_en_de", "wmt14_en_de")]
# what may differ between a model and its twin in the same recipe
OWN = {"--arch", "--lr"}


@functools.cache
def parse(recipe, name):
    flags = read_models(RECIPES / recipe, [name])[name]
    words = ["--user-dir", "hyptrans", "data-bin", *settings.words(flags, 700)]
    parser = options.get_training_parser()
    return options.parse_args_and_arch(parser, words, modify_parser=None)


def sizes_of(args):
    """The defaults of a hyperbolic architecture, where its sizes are."""
    return models.MODEL_DATACLASS_REGISTRY[args.arch]()


@pytest.mark.parametrize(("recipe", "name"), CONFIGURATIONS)
def test_fairseq_train_accepts_the_settings_and_builds_a_model(recipe, name):
    args = parse(recipe, name)
    assert args.arch in ARCH_MODEL_REGISTRY
    assert args.criterion.endswith("label_smoothed_cross_entropy")
    assert args.max_tokens
    # shapes without numbers: the largest would be a gigabyte; fairseq writes into the arguments
    with torch.device("meta"):
        model = models.build_model(copy.copy(args), task_of())
    assert isinstance(model, ARCH_MODEL_REGISTRY[args.arch])


def test_settings_are_printed_for_a_shell(capsys, monkeypatch):
    name = "hybonet_wmt_d64"
    monkeypatch.setattr("sys.argv", ["settings", "wmt14_en_de", name])
    settings.main()
    flags = read_models(RECIPES / "wmt14_en_de", [name])[name]
    assert shlex.split(capsys.readouterr().out) == settings.words(flags, 200000)
    monkeypatch.setattr("sys.argv", ["settings", "multi30k_en_de", "hvt_iwslt_d64"])
    with pytest.raises(UserError, match=r"models\.ini names no max-update of hvt_iwslt_d64: train"):
        settings.main()
    monkeypatch.setattr("sys.argv", ["settings", "wmt14", name])
    with pytest.raises(SystemExit):
        settings.main()
    assert "argument RECIPE: invalid choice: 'wmt14'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "width", "ffn", "heads", "batch"),
    [
        ("iwslt_d64", 64, 256, 4, 10240),
        ("wmt_d64", 64, 256, 4, 4 * 10240),
        ("wmt_d128", 128, 512, 8, 4 * 10240),
        ("wmt_d256", 256, 1024, 8, 4 * 10240),
    ],
)
def test_hybonet_has_the_settings_printed_in_its_paper(name, width, ffn, heads, batch):
    args = parse(*next(pair for pair in PAPERS if pair[1] == f"hybonet_{name}"))
    for side in ("encoder", "decoder"):
        parts = ("embed_dim", "ffn_embed_dim", "attention_heads", "layers")
        found = [getattr(sizes_of(args), f"{side}_{part}") for part in parts]
        assert found == [width, ffn, heads, 6]
    assert args.max_tokens * args.update_freq[0] == batch
    iwslt = name.startswith("iwslt")
    assert (args.warmup_updates, args.max_update) == ((8000, 40000) if iwslt else (6000, 200000))
    assert (args.dropout, args.attention_dropout) == ((0.0, 0.1) if iwslt else (0.1, 0.0))
    assert (args.optimizer, args.lr, args.lr_scheduler) == ("riemannian_adam", [5], "noam")
    assert (args.clip_norm, args.label_smoothing) == (0.5, 0.1)


@pytest.mark.parametrize("size", ["tiny", "base", "big"])
def test_han_has_the_papers_sizes_and_trains_like_its_baseline(size):
    han, *twins = (
        parse("wmt14_en_de", name.format(size))
        for name in ("han_{}", "euclidean_{}", "euclidean_prenorm_{}")
    )
    assert (han.han_weights, han.han_coordinates) == ("sigmoid", "polar")
    expected = {"tiny": (128, 2, 4), "base": (512, 6, 8), "big": (1024, 6, 16)}
    sizes = sizes_of(han)
    found = (sizes.encoder_embed_dim, sizes.encoder_layers, sizes.encoder_attention_heads)
    assert found == expected[size]
    for name in ("lr", "warmup_updates", "max_update", "adam_eps", "dropout", "max_tokens"):
        assert len({str(getattr(args, name)) for args in (han, *twins)}) == 1, name


@pytest.mark.parametrize("name", available(RECIPES / "multi30k_en_de"))
def test_multi30k_takes_the_best_settings_of_its_study(name):
    model = name.removesuffix("_iwslt_d64")
    args, studied = parse("multi30k_en_de", name), parse("study", model)
    lines = results.read_lines(RECIPES / "study" / "results.jsonl")
    settings = {one.model: (one.rate, one.dropout) for one in chosen(lines).values()}
    best = settings.get(model) or (_best_rate(lines, model), settings["euclidean_prenorm"][1])
    assert (args.lr, args.dropout) == ([best[0]], best[1])
    own = ("lr", "dropout", "warmup_updates", "hybonet_residual")
    found = [{key: v for key, v in vars(one).items() if key not in own} for one in (args, studied)]
    assert found[0] == found[1]
    # the sizes are those of the architecture, and it shares no embeddings unless told to
    flags = read_models(RECIPES / "multi30k_en_de", [name])[name]
    assert not [flag for flag in flags if flag.startswith(("--share", "--encoder-e"))]


def _best_rate(lines, model):
    tried = [line for line in lines if line.get("model") == model and line["stage"] == "rates"]
    return min(tried, key=lambda line: line["valid_perplexity"] or math.inf)["rate"]


@pytest.mark.parametrize("recipe", ["quickstart", "multi30k_en_de", "probing"])
def test_a_model_and_its_baseline_differ_only_in_the_learning_rate(recipe):
    names = available(RECIPES / recipe)
    (twin_name,) = (name for name in names if re.match("euclidean_(?!prenorm|postnorm)", name))
    twin = read_models(RECIPES / recipe, [twin_name])[twin_name]
    others = [name for name in names if not name.startswith("euclidean")]
    assert len(others) >= 2
    for flags in read_models(RECIPES / recipe, others).values():
        assert flags.keys() == twin.keys()
        differing = {flag for flag, value in flags.items() if twin[flag] != value}
        assert {"--arch"} <= differing <= OWN


SETTINGS = """
[*]
lr = 1
clip-norm = 0.5
total-num-update = {updates}

[*_small]
adam-betas = (0.9, 0.98)
lr = 2

[a_small b_small]
max-update = 5
share-all-embeddings

[b_small]
arch = x_tiny
lr = 3
"""


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / FILE).write_text(SETTINGS, encoding="utf-8")
    return tmp_path


def test_sections_apply_to_the_models_they_name_and_the_last_one_wins(recipe):
    assert available(recipe) == ["a_small", "b_small"]
    first, second = read_models(recipe, ["a_small", "b_small"]).values()
    assert settings.words(first, 7) == [
        *("--arch", "a_small", "--adam-betas", "(0.9, 0.98)", "--max-update", "5"),
        *("--share-all-embeddings", "--lr", "2", "--clip-norm", "0.5", "--total-num-update", "7"),
    ]
    assert (second["--arch"], second["--lr"], second["--max-update"]) == ("x_tiny", "3", "5")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a_small", "x", "y"], "--archs: no settings for x, y; this recipe has a_small, b_small"),
        ([""], "--archs: no model was named; this recipe has a_small, b_small"),
    ],
)
def test_a_model_without_settings_is_an_error(recipe, names, message):
    with pytest.raises(UserError, match=message):
        read_models(recipe, names)


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        *itertools.product(("cogs", "trees", "scan"), exact.MODELS),
        *itertools.product(slog.SETTINGS, slog.MODELS),
        *itertools.product(("wordnet",), wordnet.MODELS),
    ],
)
def test_fairseq_train_accepts_the_flags_of_exact_tasks(recipe, name):
    training = {
        "cogs": lambda: cogs.rates([], name).trials[0],
        "trees": lambda: trees._training(name, "d16", 1e-2),
        "scan": lambda: scan._training(name, "length", 1e-3),
        "wordnet": lambda: wordnet._training(name, wordnet.CELL, 1e-2),
        **{one: lambda one=one: slog.rates([], one, name).trials[0] for one in slog.SETTINGS},
    }[recipe]()
    run = exact.run_of(training, RECIPES)
    # candidates are registered already
    words = ["data-bin", "--user-dir", "hyptrans", *run.train()[4:]]
    parser = options.get_training_parser()
    args = options.parse_args_and_arch(parser, words, modify_parser=None)
    with torch.device("meta"):
        built = models.build_model(copy.copy(args), task_of())
    assert len(built.encoder.layers) == len(built.decoder.layers) == 2
    # of ours, and of fairseq's own Transformer
    wanted = ("embed_positions.norm", "layernorm_embedding")
    norms = {part for part, _ in built.named_modules() if any(one in part for one in wanted)}
    assert bool(norms) == (name == "euclidean_postnorm") or not name.startswith("euclidean")
