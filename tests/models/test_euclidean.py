"""The twins against fairseq's own Transformer with the same parameters."""

import pytest
import torch
from torch.nn import functional as F

from hyptrans.inference.architecture import configuration
from hyptrans.kernels import backend
from hyptrans.models.euclidean import PRENORM
from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.seq2seq.sizes import SIZES
from tests.models.conftest import SMALL, batch, build, dictionary, task_of
from tests.seq2seq.test_doors import assert_same_distributions, learned

WORDS = dictionary(200)
LEARNED = {"encoder_learned_pos": True, "decoder_learned_pos": True}
POSTNORM = {"layernorm_embedding": True}
OPTIONS = [
    {},
    PRENORM,
    LEARNED | POSTNORM,
    PRENORM | {"no_decoder_final_norm": True, "no_scale_embedding": True},
    {"encoder_normalize_before": True, "no_token_positional_embeddings": True},
    {"decoder_normalize_before": True, "activation_fn": "gelu", "decoder_output_dim": 24},
    {"share_all_embeddings": True, "activation_fn": "tanh"},
    LEARNED | {"share_decoder_input_output_embed": True, "activation_fn": "linear"},
    {"decoder_embed_dim": 24, "decoder_layers": 1, "decoder_ffn_embed_dim": 20},
]
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5}


def pair(dtype=torch.float64, **options):
    """fairseq's model and ours of the same parameters, moved as by some training."""
    torch.manual_seed(0)
    theirs = build("transformer", task_of(WORDS), **{**SMALL, **options})
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    cfg = configuration("transformer", {**SMALL, **options})
    ours = ARCHITECTURES["transformer"].build(cfg, WORDS, WORDS)
    ours.load_state_dict(theirs.state_dict())
    return theirs.to(dtype), ours.to(dtype)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
def test_outputs_and_gradients_match_fairseq(options, dtype, sentences, monkeypatch):
    # fairseq computes these in float32
    monkeypatch.setattr("fairseq.utils.softmax", lambda x, dim, onnx_trace: x.softmax(dim))
    monkeypatch.setattr("fairseq.modules.gelu", F.gelu)
    theirs, ours = pair(dtype, dropout=0.0, **options)
    source, previous = batch(sentences, WORDS)
    real = previous.ne(WORDS.pad())
    made = []
    for model, logits in (
        (theirs, theirs(source, None, previous)[0]),
        (ours, ours(source, previous)),
    ):
        logits[real].logsumexp(-1).sum().backward()
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        made.append((logits[real], learned(gradients)))
    tolerance = {"rtol": 100 * TOLERANCES[dtype], "atol": TOLERANCES[dtype]}
    torch.testing.assert_close(made[1][0], made[0][0], **tolerance)
    assert made[1][1].keys() == made[0][1].keys()
    for name, gradient in made[0][1].items():
        torch.testing.assert_close(made[1][1][name], gradient, **tolerance, msg=name)


@pytest.mark.parametrize("options", [{}, PRENORM, POSTNORM | {"relu_dropout": 0.3}])
def test_dropout_acts_where_fairseq_applies_it(options, sentences, monkeypatch):
    theirs, ours = pair(dropout=0.3, attention_dropout=0.2, **options)
    usual = F.scaled_dot_product_attention

    def dropout(x, p=0.5, training=True, inplace=False):
        # no draws, so that the order of dimensions does not matter, but as sensitive to its place
        return x * (1 + p * (5 * x).sin()) if training else x

    def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False):
        identity = torch.eye(k.size(-2), dtype=k.dtype).expand(*k.shape[:-1], -1)
        weights = usual(q, k, identity, attn_mask=attn_mask, is_causal=is_causal)
        return dropout(weights, dropout_p) @ v

    source, previous = batch(sentences, WORDS)
    real = previous.ne(WORDS.pad())
    before = theirs(source, None, previous)[0][real]
    monkeypatch.setattr(backend, "CHOSEN", "eager")
    monkeypatch.setattr("fairseq.utils.softmax", lambda x, dim, onnx_trace: x.softmax(dim))
    monkeypatch.setattr(F, "dropout", dropout)
    monkeypatch.setattr(F, "scaled_dot_product_attention", attention)
    wanted, found = theirs(source, None, previous)[0][real], ours(source, previous)[real]
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)
    assert (wanted - before).abs().max() > 0.01


@pytest.mark.parametrize("options", [{}, {"decoder_embed_dim": 64, "decoder_output_dim": 80}])
def test_initial_parameters_have_fairseqs_distribution(options):
    flags = {**LEARNED, **POSTNORM, **PRENORM, "encoder_layers": 1, "decoder_layers": 1, **options}
    theirs = build("transformer", task_of(WORDS), **flags)
    ours = ARCHITECTURES["transformer"].build(configuration("transformer", flags), WORDS, WORDS)
    assert_same_distributions(*(learned(model.named_parameters()) for model in (ours, theirs)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "flags"),
    [("euclidean", {}), ("euclidean_prenorm", PRENORM), ("euclidean_postnorm", POSTNORM)],
)
def test_a_baseline_equals_the_plain_transformer_with_its_flags(name, flags, size):
    twin = configuration(f"{name}_{size}", {})
    plain = configuration(f"euclidean_{size}", flags)
    assert vars(twin) == vars(plain)
    assert twin.encoder_normalize_before == (name == "euclidean_prenorm")
