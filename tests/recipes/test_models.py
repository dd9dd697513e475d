import math
import re
from pathlib import Path

import pytest
import torch
from fairseq import models, options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY

import recipes.study.candidates  # noqa: F401 - registers those that the study tries
from hyptrans.support.errors import UserError
from recipes.common import results
from recipes.common.models import available, read_models
from recipes.common.preparation import training_commands
from recipes.study.findings import finals
from tests.models.conftest import task_of
from tests.recipes.scripts import RECIPES

CONFIGURATIONS = sorted(RECIPES.rglob("*.args"))
PAPERS = sorted([*RECIPES.glob("iwslt14*/*.args"), *RECIPES.glob("wmt14*/*/*.args")])
PRENORM = [path for path in CONFIGURATIONS if path.stem.startswith("euclidean_prenorm")]
# what may differ between a model and its twin in the same recipe
OWN = {"--arch", "--lr"}


def parse(path):
    (model,) = read_models(path.parent, [path.stem])
    words = ["--user-dir", "hyptrans", "data-bin", *model.flags_for(updates=700)]
    parser = options.get_training_parser()
    return options.parse_args_and_arch(parser, words, modify_parser=None)


def sizes_of(args):
    """The defaults of a hyperbolic architecture, where its sizes are."""
    return models.MODEL_DATACLASS_REGISTRY[args.arch]()


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_configuration_is_understood_by_fairseq_train_and_makes_a_model(path):
    args = parse(path)
    assert args.arch in ARCH_MODEL_REGISTRY
    assert args.criterion.endswith("label_smoothed_cross_entropy")
    assert args.max_tokens
    # shapes without numbers: the largest would be a gigabyte
    with torch.device("meta"):
        model = models.build_model(convert_namespace_to_omegaconf(args).model, task_of())
    assert isinstance(model, ARCH_MODEL_REGISTRY[args.arch])


@pytest.mark.parametrize("path", PAPERS, ids=lambda p: p.stem)
def test_configuration_of_a_paper_says_how_long_it_trains_and_where_it_is_from(path):
    (model,) = read_models(path.parent, [path.stem])
    assert model.updates >= 40000
    comment = path.read_text(encoding="utf-8").splitlines()[0]
    assert re.match("# .*(paper|by analogy|Euclidean twin)", comment)


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
    path = next(path for path in PAPERS if path.stem == f"hybonet_{name}")
    args = parse(path)
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
def test_han_has_the_sizes_of_its_paper_and_is_trained_as_its_twins(size):
    paths = {path.stem: path for path in PAPERS}
    han, *twins = (
        parse(paths[name.format(size)])
        for name in ("han_{}", "euclidean_{}", "euclidean_prenorm_{}")
    )
    assert (han.han_weights, han.han_coordinates) == ("sigmoid", "polar")
    expected = {"tiny": (128, 2, 4), "base": (512, 6, 8), "big": (1024, 6, 16)}
    sizes = sizes_of(han)
    found = (sizes.encoder_embed_dim, sizes.encoder_layers, sizes.encoder_attention_heads)
    assert found == expected[size]
    for name in ("lr", "warmup_updates", "max_update", "adam_eps", "dropout", "max_tokens"):
        assert len({str(getattr(args, name)) for args in (han, *twins)}) == 1, name


STUDY_NAMES = {
    "euclidean_prenorm": "prenorm",
    "euclidean": "postnorm",
    "hybonet_plus": "hypformer_softmax",
}


@pytest.mark.parametrize("name", available(RECIPES / "multi30k_en_de"))
def test_multi30k_has_the_settings_of_the_study_and_the_best_of_its_rates_and_dropouts(name):
    model = name.removesuffix("_iwslt_d64")
    model = STUDY_NAMES.get(model, model)
    args, studied = (
        parse(RECIPES / path)
        for path in (f"multi30k_en_de/{name}.args", f"study/models/{model}.args")
    )
    lines = results.read_lines(RECIPES / "study" / "results.jsonl")
    settings = {one.model: (one.rate, one.dropout) for one in finals.chosen(lines).values()}
    best = settings.get(model) or (_best_rate(lines, model), settings["prenorm"][1])
    assert (args.lr, args.dropout) == ([best[0]], best[1])
    own = ("arch", "lr", "dropout", "warmup_updates", "hypformer_attention", "hybonet_residual")
    found = [{key: v for key, v in vars(one).items() if key not in own} for one in (args, studied)]
    assert found[0] == found[1]
    # the sizes are those of the architecture, and it shares no embeddings unless told to
    (read,) = read_models(RECIPES / "multi30k_en_de", [name])
    assert not [flag for flag in read.flags if flag.startswith(("--share", "--encoder-e"))]


def _best_rate(lines, model):
    tried = [line for line in lines if line.get("model") == model and line["stage"] == "rates"]
    return min(tried, key=lambda line: line["valid_perplexity"] or math.inf)["rate"]


@pytest.mark.parametrize("recipe", ["quickstart", "multi30k_en_de", "probing"])
def test_a_model_and_its_twin_differ_in_the_learning_rate_alone(recipe):
    names = available(RECIPES / recipe)
    (twin_name,) = (name for name in names if re.match("euclidean_(?!prenorm)", name))
    (twin,) = read_models(RECIPES / recipe, [twin_name])
    others = [name for name in names if not name.startswith("euclidean")]
    assert len(others) >= 2
    for model in read_models(RECIPES / recipe, others):
        flags = [m.flags_for(updates=10) for m in (model, twin)]
        if "--hybonet-residual" in flags[0]:  # a form of its own
            place = flags[0].index("--hybonet-residual")
            del flags[0][place : place + 2]
        both = list(zip(*flags, strict=True))
        differing = {both[i - 1][0] for i, (one, other) in enumerate(both) if one != other}
        assert {"--arch"} <= differing <= OWN


@pytest.mark.parametrize("path", PRENORM, ids=lambda p: p.parent.name)
def test_prenorm_twin_is_the_twin_with_layer_normalization_moved(path):
    twin = parse(path.with_name(path.name.replace("_prenorm", "")))
    args = parse(path)
    differing = {name for name, value in vars(args).items() if vars(twin)[name] != value}
    moved = {"encoder_normalize_before", "decoder_normalize_before"}
    assert moved <= differing <= {*moved, "lr"}
    assert args.encoder_normalize_before
    assert args.decoder_normalize_before


def test_every_recipe_with_a_twin_has_a_prenorm_twin():
    twins = {path.parent for path in CONFIGURATIONS if path.stem.startswith("euclidean")}
    assert {path.parent for path in PRENORM} == twins
    # a folder each, and one for each size of WMT'14
    assert len(twins) == 5 + 6


def test_training_command_of_a_prenorm_twin_has_its_architecture_and_a_folder_of_its_own():
    lines = training_commands(RECIPES / "iwslt14_en_de", Path("data"))
    (line,) = (line for line in lines if "prenorm" in line)
    assert "--arch euclidean_iwslt_d64 --encoder-normalize-before" in line
    assert line.endswith(" --save-dir checkpoints/iwslt14_en_de/euclidean_prenorm_iwslt_d64")


@pytest.mark.parametrize("flags", ["--lr 1 --arch x_tiny", "--arch=x_tiny --lr 1"])
def test_a_file_may_name_its_architecture_and_keeps_its_own_name(tmp_path, flags):
    (tmp_path / "a.args").write_text(flags, encoding="utf-8")
    (model,) = read_models(tmp_path, ["a"])
    assert model.name == "a"
    assert model.flags_for(updates=1) == flags.split()


def test_files_in_folders_are_found_by_name_alone(tmp_path):
    for folder in ("small", "large"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"a_{folder}.args").write_text("--max-update 5", encoding="utf-8")
    assert available(tmp_path) == ["a_large", "a_small"]
    (model,) = read_models(tmp_path, ["a_small"])
    assert (model.name, model.updates) == ("a_small", 5)


def test_a_number_of_updates_that_nobody_gave_is_asked_for(tmp_path):
    (tmp_path / "a.args").write_text("--lr 1", encoding="utf-8")
    (model,) = read_models(tmp_path, ["a"])
    with pytest.raises(UserError, match=r"a\.args names no --max-update: give --updates"):
        assert model.updates


def test_number_of_updates_is_filled_in(tmp_path):
    (tmp_path / "a.args").write_text("--total-num-update {updates}  # all\n", encoding="utf-8")
    (model,) = read_models(tmp_path, ["a"])
    assert model.flags_for(updates=7) == ["--arch", "a", "--total-num-update", "7"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "x", "y"], "--archs: no configuration for x, y; this recipe has a"),
        ([""], "--archs: no model was named; this recipe has a"),
    ],
)
def test_a_model_without_configuration_is_an_error(tmp_path, names, message):
    (tmp_path / "a.args").write_text("--lr 1", encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_models(tmp_path, names)
