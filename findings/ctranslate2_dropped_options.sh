#!/usr/bin/env bash
# Guess: CTranslate2's converter of fairseq checkpoints refuses every model option that it does not carry over, as it refuses
# --no-token-positional-embeddings and unequal numbers of heads.
# Seen: --cross-self-attention and --quant-noise-pq are converted without a word, and the model computes something else: the
# decoder no longer attends to its own positions beside the source's, and the learned layer behind the embeddings is gone.
# Matters: a converted model translates worse and nothing says why; compare log probabilities of both before serving one.
# Versions: ctranslate2 4.8.5, fairseq 0.12.2, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
fairseq_packages ctranslate2==4.8.5
"$python" - "$work" <<'PY' 2> "$work/said" || { tail -n 5 "$work/said"; exit 1; }
import os
import sys
from argparse import Namespace
from types import SimpleNamespace

import ctranslate2
import torch
from ctranslate2.converters import FairseqConverter
from fairseq import models
from fairseq.data import Dictionary
from finding import seen, versions

versions("ctranslate2", "fairseq", "torch")
# the converter reads checkpoints by torch.load, which knows no Namespace
torch.serialization.add_safe_globals([Namespace])
words, folder = Dictionary(), sys.argv[1]
for letter in "abcdefgh":
    words.add_symbol(letter)
for language in ("source", "target"):
    words.save(f"{folder}/dict.{language}.txt")


def trial(**options) -> str:
    """Return how log probabilities of both differ, or the name of the error."""
    sizes = {"layers": 2, "embed_dim": 16, "ffn_embed_dim": 32, "attention_heads": 2}
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in sizes.items()}
    args = Namespace(arch="transformer", task="translation", source_lang="source", target_lang="target",
                     max_source_positions=64, max_target_positions=64, **{**sizes, **options})
    models.ARCH_CONFIG_REGISTRY["transformer"](args)
    torch.manual_seed(1)
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    model = models.ARCH_MODEL_REGISTRY["transformer"].build_model(args, task).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    torch.save({"args": args, "model": model.state_dict()}, f"{folder}/model.pt")
    out = f"{folder}/out{len(os.listdir(folder))}"
    try:
        FairseqConverter(f"{folder}/model.pt", folder).convert(out)
    except ValueError as error:
        return type(error).__name__
    translator = ctranslate2.Translator(out, intra_threads=1)
    theirs = translator.score_batch([list("abc")], [list("defg")])[0].log_probs
    source = torch.tensor([[words.index(word) for word in "abc"] + [words.eos()]])
    target = torch.tensor([words.index(word) for word in "defg"] + [words.eos()])
    with torch.no_grad():
        numbers, _ = model(source, torch.tensor([4]), torch.cat([target[-1:], target[:-1]])[None])
    ours = numbers[0].log_softmax(-1).gather(1, target[:, None])[:, 0]
    return "equal" if (ours - torch.tensor(theirs)).abs().max() < 1e-4 else "another model"


seen("no option", trial(), "equal")
seen("--layernorm-embedding", trial(layernorm_embedding=True), "equal")
seen("--no-token-positional-embeddings", trial(no_token_positional_embeddings=True), "ValueError")
seen("--cross-self-attention", trial(cross_self_attention=True), "another model")
seen("--quant-noise-pq 0.1", trial(quant_noise_pq=0.1), "another model")
PY
