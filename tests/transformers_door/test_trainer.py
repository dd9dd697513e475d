"""Seq2SeqTrainer trains our models, and goes on where it was stopped."""

from argparse import Namespace

import pytest
import torch

pytest.importorskip("accelerate")


@pytest.mark.parametrize("points", [False, True])
def test_a_resumed_training_ends_in_the_same_bits(tokenizer, sentences, tmp_path, points):
    from recipes.transformers.__main__ import make_trainer

    made = tokenizer(sentences, text_target=sentences)
    pairs = zip(made["input_ids"], made["labels"], strict=True)
    rows = [{"input_ids": source, "labels": target} for source, target in pairs] * 8
    args = Namespace(arch="hybonet_tiny", points=points, updates=6, seed=1, save_steps=3)
    ends = []
    for name, begun in (("whole", None), ("resumed", str(tmp_path / "whole" / "checkpoint-3"))):
        trainer = make_trainer(tokenizer, rows, tmp_path / name, args)
        first = {key: value.clone() for key, value in trainer.model.state_dict().items()}
        trainer.train(resume_from_checkpoint=begun)
        ends.append(trainer.model.state_dict())
    assert not torch.equal(
        first["decoder.embed_tokens.weight"], ends[0]["decoder.embed_tokens.weight"]
    )
    assert all(torch.equal(ends[1][key], value) for key, value in ends[0].items())
