import re
from pathlib import Path

import pytest
from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY

from hyptrans.support.errors import UserError
from recipes.common.models import available, read_models
from recipes.common.preparation import training_commands
from tests.recipes.scripts import RECIPES

CONFIGURATIONS = sorted(RECIPES.glob("*/*.args"))
PRENORM = [path for path in CONFIGURATIONS if path.stem.startswith("euclidean_prenorm")]
# what may differ between a model and its twin in the same recipe
OWN = {"--arch", "--lr"}


def parse(path):
    (model,) = read_models(path.parent, [path.stem])
    words = ["--user-dir", "hyptrans", "data-bin", *model.flags_for(updates=700)]
    parser = options.get_training_parser()
    return options.parse_args_and_arch(parser, words, modify_parser=None)


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_configuration_is_understood_by_fairseq_train(path):
    args = parse(path)
    assert args.arch in ARCH_MODEL_REGISTRY
    assert args.criterion.endswith("label_smoothed_cross_entropy")
    assert args.max_tokens


def test_multi30k_has_the_settings_of_the_reference_point():
    args = parse(RECIPES / "multi30k_en_de" / "hybonet_iwslt_d64.args")
    assert (args.optimizer, args.adam_betas, args.lr) == ("adam", "(0.9, 0.98)", [1e-2])
    assert (args.lr_scheduler, args.warmup_updates) == ("inverse_sqrt", 1000)
    assert (args.dropout, args.attention_dropout, args.label_smoothing) == (0.1, 0.1, 0.1)
    assert (args.clip_norm, args.max_tokens) == (0.5, 4096)
    # the sizes are those of the architecture, and it shares no embeddings unless told to
    (model,) = read_models(RECIPES / "multi30k_en_de", ["hybonet_iwslt_d64"])
    assert not [flag for flag in model.flags if flag.startswith(("--share", "--encoder"))]


@pytest.mark.parametrize("recipe", ["quickstart", "multi30k_en_de", "probing"])
def test_a_model_and_its_twin_differ_in_the_learning_rate_alone(recipe):
    names = available(RECIPES / recipe)
    (twin_name,) = (name for name in names if re.match("euclidean_(?!prenorm)", name))
    (twin,) = read_models(RECIPES / recipe, [twin_name])
    others = [name for name in names if not name.startswith("euclidean")]
    assert len(others) >= 2
    for model in read_models(RECIPES / recipe, others):
        both = list(zip(*(m.flags_for(updates=10) for m in (model, twin)), strict=True))
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
    assert len(twins) == 6


def test_training_command_of_a_prenorm_twin_has_its_architecture_and_a_folder_of_its_own():
    lines = training_commands(RECIPES / "iwslt14_en_de", Path("data"))
    (line,) = (line for line in lines if "prenorm" in line)
    assert "--arch euclidean_iwslt_d64 --encoder-normalize-before" in line
    assert line.endswith(" --save-dir runs/iwslt14_en_de/euclidean_prenorm_iwslt_d64")


@pytest.mark.parametrize("flags", ["--lr 1 --arch x_tiny", "--arch=x_tiny --lr 1"])
def test_a_file_may_name_its_architecture_and_keeps_its_own_name(tmp_path, flags):
    (tmp_path / "a.args").write_text(flags, encoding="utf-8")
    (model,) = read_models(tmp_path, ["a"])
    assert model.name == "a"
    assert model.flags_for(updates=1) == flags.split()


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
