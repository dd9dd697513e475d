"""Options reach the parts of a model that they configure."""

from functools import partial
from types import SimpleNamespace

import pytest
from fairseq import models

from hyptrans.layers.curvature import Curvature
from hyptrans.layers.hvt_attention import QUERY_KEY_GAIN
from hyptrans.layers.hybonet import LorentzResidual
from hyptrans.support.errors import UserError
from tests.models.conftest import ARCHITECTURES, SMALL, build, dictionary, task_of

C = 0.37


def with_option(name):
    configurations = {arch: models.MODEL_DATACLASS_REGISTRY[arch]() for arch in ARCHITECTURES}
    # the fifth is an example in these tests, of one curvature
    return [a for a, cfg in configurations.items() if hasattr(cfg, name) and a != "fifth_tiny"]


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


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_each_side_has_as_many_positions_as_its_option_says(arch):
    options = SMALL | {"max_source_positions": 40, "max_target_positions": 50}
    model = build(arch, **options)
    assert (model.encoder.max_positions(), model.decoder.max_positions()) == (40, 50)
    for side, rows in ((model.encoder, 40), (model.decoder, 50)):
        tables = {len(table) for table in side.embed_positions.parameters() if table.dim() == 2}
        assert rows in tables


@pytest.mark.parametrize("residual", ["full", "space", "logit", "sphere", "centroid"])
def test_option_sets_every_residual_form_except_for_positions(residual):
    model = build("hybonet_tiny", **SMALL, hybonet_residual=residual)
    forms = {
        name: part.form for name, part in model.named_modules() if isinstance(part, LorentzResidual)
    }
    of_positions = {form for name, form in forms.items() if "embed_positions" in name}
    assert of_positions == {"space" if residual == "space" else "full"}
    ends = {
        form
        for name, form in forms.items()
        if name.endswith((".out.residual", ".contract.residual"))
    }
    assert ends == {residual}


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({f"{side}_{name}": size}, f"--{side}-{name.replace('_', '-')} must be at least 1, got")
            for side, size in (("encoder", 0), ("decoder", -1))
            for name in ("attention_heads", "layers", "ffn_embed_dim")
        ),
        (
            {"encoder_attention_heads": 3},
            "--encoder-embed-dim 16 is not divisible by --encoder-att",
        ),
        (
            {"share_all_embeddings": True, "decoder_embed_dim": 32},
            "--decoder-embed-dim to equal --encoder-embed-dim",
        ),
        ({"curvature": 1e-7}, r"--curvature must be above 0, from 1e-06 to 1e\+06"),
        ({"curvature": 1e7}, r"--curvature must be above 0, from 1e-06 to 1e\+06"),
    ],
)
def test_impossible_model_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        build("hybonet_tiny", **{**SMALL, **options})


def test_shared_embeddings_need_one_dictionary():
    apart = task_of(dictionary(), dictionary(prefix="v"))
    with pytest.raises(ValueError, match="--joined-dictionary"):
        build("hybonet_tiny", apart, **SMALL, share_all_embeddings=True)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_retain_dropout_is_refused(arch):
    asked = {"beam": 5, "print_alignment": None, "retain_dropout_modules": None}
    for retained in (False, True):
        generation = SimpleNamespace(**asked, retain_dropout=retained)
        prepare = build(arch, **SMALL).prepare_for_inference_
        prepared = partial(prepare, SimpleNamespace(generation=generation))
        if retained:
            with pytest.raises(
                UserError, match="this architecture does not support --retain-dropout"
            ):
                prepared()
        else:
            prepared()
