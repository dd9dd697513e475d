from pathlib import Path

import pytest
from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY

from hyptrans.support.errors import UserError
from recipes.common.models import available, read_models

RECIPES = Path(__file__).parents[2] / "recipes"
CONFIGURATIONS = sorted(RECIPES.glob("*/*.args"))
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
    assert args.arch == path.stem
    assert path.stem in ARCH_MODEL_REGISTRY
    assert args.criterion == "label_smoothed_cross_entropy"
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
    (twin_name,) = (name for name in names if name.startswith("euclidean"))
    *others, twin = read_models(
        RECIPES / recipe, [n for n in names if n != twin_name] + [twin_name]
    )
    assert len(others) >= 2
    for model in others:
        both = list(zip(*(m.flags_for(updates=10) for m in (model, twin)), strict=True))
        differing = {both[i - 1][0] for i, (one, other) in enumerate(both) if one != other}
        assert {"--arch"} <= differing <= OWN


def test_number_of_updates_is_filled_in(tmp_path):
    (tmp_path / "a.args").write_text("--total-num-update {updates}  # all\n", encoding="utf-8")
    (model,) = read_models(tmp_path, ["a"])
    assert model.flags_for(updates=7) == ["--arch", "a", "--total-num-update", "7"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "x", "y"], "--archs: no configuration for x, y; this recipe has a"),
        ([""], "--archs: no architecture was named; this recipe has a"),
    ],
)
def test_an_architecture_without_configuration_is_an_error(tmp_path, names, message):
    (tmp_path / "a.args").write_text("--lr 1", encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_models(tmp_path, names)
