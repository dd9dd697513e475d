"""Models whose next-token probabilities never change: scores of a search follow on paper.

``logits`` may be log probabilities or those plus a constant. All weights are 0 but the bias of
the output.
"""

import logging
import math
import tempfile
import warnings

import numpy

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")

WORDS = ["<pad>", "</s>", "<unk>", "a", "b", "c"]
PROBABILITIES = [1e-6, 0.3, 1e-6, 0.4, 0.2, 0.099997]
LOGITS = [math.log(p) for p in PROBABILITIES]
LOG = dict(zip("_$?abc", LOGITS, strict=True))  # "$" is the end of sentence
WIDTH = 8


def text(tokens) -> str:
    """Words joined, with $ for the end of sentence and without padding."""
    return "".join({"</s>": "$", "<pad>": ""}.get(token, token) for token in tokens)


def ctranslate2_translator(logits=LOGITS):
    """A CTranslate2 translator; results of ``search`` below."""
    import ctranslate2
    from ctranslate2.specs.transformer_spec import TransformerSpec

    def zeros(*shape):
        return numpy.zeros(shape, "float32")

    def linear(layer, outputs: int) -> None:
        layer.weight, layer.bias = zeros(outputs, WIDTH), zeros(outputs)

    def norm(layer) -> None:
        layer.gamma, layer.beta = numpy.ones(WIDTH, "float32"), zeros(WIDTH)

    def block(layer, attentions) -> None:
        for attention, sizes in attentions:
            for part, size in zip(attention.linear, sizes, strict=True):
                linear(part, size * WIDTH)
            norm(attention.layer_norm)
        linear(layer.ffn.linear_0, WIDTH)
        linear(layer.ffn.linear_1, WIDTH)
        norm(layer.ffn.layer_norm)

    spec = TransformerSpec.from_config(1, 1)
    embeddings = spec.encoder.embeddings
    (embeddings[0] if isinstance(embeddings, list) else embeddings).weight = zeros(
        len(WORDS), WIDTH
    )
    spec.decoder.embeddings.weight = zeros(len(WORDS), WIDTH)
    block(spec.encoder.layer[0], [(spec.encoder.layer[0].self_attention, (3, 1))])
    layer = spec.decoder.layer[0]
    block(layer, [(layer.self_attention, (3, 1)), (layer.attention, (1, 2, 1))])
    norm(spec.encoder.layer_norm)
    norm(spec.decoder.layer_norm)
    spec.decoder.projection.weight = zeros(len(WORDS), WIDTH)
    spec.decoder.projection.bias = numpy.array(logits, "float32")
    spec.register_source_vocabulary(WORDS)
    spec.register_target_vocabulary(WORDS)
    spec.config.add_source_eos, spec.config.decoder_start_token = True, "<pad>"
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "<pad>", "</s>", "<unk>"
    with tempfile.TemporaryDirectory() as folder:
        spec.validate()
        spec.optimize()
        spec.save(folder)
        return ctranslate2.Translator(folder, intra_threads=1)


def ctranslate2_search(translator, source=("a",), **options) -> list[tuple[str, float]]:
    """Hypotheses and scores of one sentence."""
    options = {"max_decoding_length": 4, "return_end_token": True, "return_scores": True, **options}
    (found,) = translator.translate_batch([list(source)], **options)
    return [
        (text(tokens), round(score, 4))
        for tokens, score in zip(found.hypotheses, found.scores, strict=True)
    ]


def transformers_model(logits=LOGITS):
    """A Marian model of transformers; results of ``transformers_search`` below."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    model = MarianMTModel(
        MarianConfig(
            vocab_size=len(WORDS), d_model=WIDTH, encoder_layers=1, decoder_layers=1,
            encoder_attention_heads=1, decoder_attention_heads=1, encoder_ffn_dim=WIDTH,
            decoder_ffn_dim=WIDTH, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
            forced_eos_token_id=None, max_position_embeddings=64,
        )
    ).eval()  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.final_logits_bias[0] = torch.tensor(logits)
    for name in ("max_length", "forced_eos_token_id", "bad_words_ids"):
        setattr(model.generation_config, name, None)
    return model


def transformers_search(model, prefix="", **options) -> list[tuple[str, float | None]]:
    """Hypotheses and scores of one sentence; greedy search has no score."""
    import torch

    start = torch.tensor([[0, *(WORDS.index(word) for word in prefix)]])
    options = {
        "max_new_tokens": 4,
        "num_beams": 1,
        "output_scores": True,
        "return_dict_in_generate": True,
        **options,
    }
    found = model.generate(torch.tensor([[3, 1]]), decoder_input_ids=start, **options)
    scores = (
        found.sequences_scores.tolist()
        if options["num_beams"] > 1
        else [None] * len(found.sequences)
    )
    texts = (text(WORDS[token] for token in tokens) for tokens in found.sequences.tolist())
    return [
        (words.rstrip("$") + "$" * ("$" in words), score and round(score, 4))
        for words, score in zip(texts, scores, strict=True)
    ]
