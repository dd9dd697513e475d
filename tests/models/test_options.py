from types import SimpleNamespace

import pytest

from hyptrans.layers.curvature import Curvature
from hyptrans.layers.hvt_attention import QUERY_KEY_GAIN
from hyptrans.support.errors import UserError
from tests.models.conftest import ARCHITECTURES, SMALL, build, dictionary, task_of, with_option

C = 0.37


def found(model, attribute, kind):
    """The values of an attribute, by the names of the modules that have one of a type."""
    values = {name: getattr(part, attribute, None) for name, part in model.named_modules()}
    return {name: value for name, value in values.items() if isinstance(value, kind)}


@pytest.mark.parametrize("storage", ["space", "manifold"])
@pytest.mark.parametrize("arch", with_option("curvature"))
def test_every_layer_takes_the_curvature_option(arch, storage):
    model = build(arch, **SMALL, curvature=C, embedding_storage=storage)
    fixed = found(model, "c", float)
    learned = [part() for part in model.modules() if isinstance(part, Curvature)]
    assert fixed or learned
    assert set(fixed.values()) <= {C}
    for value in learned:
        assert value.item() == pytest.approx(C, rel=1e-5)


def test_hvt_initializes_self_and_cross_attention_alike():
    layer = build(
        "hvt_tiny", **SMALL | {"encoder_embed_dim": 256, "decoder_embed_dim": 256}
    ).decoder
    cross, own = layer.layers[0].cross_attention, layer.layers[0].attention
    keys, values = cross.kv.weight.chunk(2)
    spread = [part.std().item() for part in (cross.q.weight, keys, *own.qkv.weight.chunk(3)[:2])]
    assert spread == pytest.approx([spread[0]] * 4, rel=0.02)
    assert own.qkv.weight.chunk(3)[2].std().item() == pytest.approx(values.std().item(), rel=0.02)
    assert spread[0] / values.std().item() == pytest.approx(QUERY_KEY_GAIN, rel=0.02)


OF_HYPFORMER = [
    ({"curvature": -1.0, "hypformer_learn_curvature": False}, "--curvature must be above 0"),
    ({"hypformer_focus_power": 0.0}, "--hypformer-focus-power must be above 0, got 0"),
    (
        {"hypformer_attention": "softmax", "hypformer_focus_power": 2.0},
        "--hypformer-focus-power acts in --hypformer-attention linear",
    ),
    (
        {"hypformer_attention": "softmax", "encoder_attention_heads": 16},
        "--hypformer-attention softmax needs heads of width 2 or more",
    ),
]
NO_ROTATION = "--rotary-positions needs softmax attention .* leave it"
NARROW = "needs heads of width . or more, got --decoder-attention-heads"
DIVISIBLE = "--encoder-embed-dim 16 is not divisible by --encoder-att"
CURVATURE = r"--curvature must be above 0, from 1e-06 to 1e\+06"
ROTARY, UNEQUAL = (
    {"rotary_positions": True},
    {"share_all_embeddings": True, "decoder_embed_dim": 32},
)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        *(("hypformer", *case) for case in OF_HYPFORMER),
        *((name, ROTARY, NO_ROTATION) for name in ("han", "hvt", "fifth")),
        ("hybonet", ROTARY | {"decoder_attention_heads": 8}, f"{NARROW} 8"),
        ("euclidean", ROTARY | {"decoder_attention_heads": 16}, f"{NARROW} 16"),
        *(
            (
                "hybonet",
                {f"{side}_{name}": size},
                f"--{side}-{name.replace('_', '-')} must be at least 1, got",
            )
            for side, size in (("encoder", 0), ("decoder", -1))
            for name in ("attention_heads", "layers", "ffn_embed_dim")
        ),
        ("hybonet", {"encoder_attention_heads": 3}, DIVISIBLE),
        ("hybonet", UNEQUAL, "--decoder-embed-dim to equal --encoder-embed-dim"),
        *(("hybonet", {"curvature": c}, CURVATURE) for c in (1e-7, 1e7)),
    ],
)
def test_impossible_model_options_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        build(f"{name}_tiny", **{**SMALL, **options})


def test_shared_embeddings_need_one_dictionary():
    apart = task_of(dictionary(), dictionary(prefix="v"))
    with pytest.raises(ValueError, match="--joined-dictionary"):
        build("hybonet_tiny", apart, **SMALL, share_all_embeddings=True)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_retain_dropout_is_refused(arch):
    asked = {"beam": 5, "print_alignment": None, "retain_dropout_modules": None}
    usual, retained = (
        SimpleNamespace(generation=SimpleNamespace(**asked, retain_dropout=retain))
        for retain in (False, True)
    )
    build(arch, **SMALL).prepare_for_inference_(usual)
    with pytest.raises(UserError, match="this architecture does not support --retain-dropout"):
        build(arch, **SMALL).prepare_for_inference_(retained)
