"""Seq2SeqTrainer trains our models, and goes on where it was stopped."""

from pathlib import Path

import pytest
import torch

from hyptrans.support.errors import UserError
from tests.transformers_door.training import make_trainer, rows_of

pytest.importorskip("accelerate")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "options",
    [pytest.param({"bf16": True}, marks=pytest.mark.slow), {"activation_checkpointing": True}],
)
def test_a_step_is_nearly_that_without(tokenizer, sentences, tmp_path, options):
    rows, ends = rows_of(tokenizer, sentences), []
    for chosen in ({}, options):
        trainer = make_trainer(tokenizer, rows, tmp_path / "out", "hybonet_plus_tiny", 2, **chosen)
        ends.append(trainer.train().training_loss)
        again = trainer.model.is_activation_checkpointing
        assert again == ("activation_checkpointing" in chosen)
    close = 0.02 if "bf16" in options else 1e-6
    assert ends[1] == pytest.approx(ends[0], rel=close)
    assert ("bf16" in options) == (ends[1] != ends[0])


@pytest.mark.parametrize("points", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_resumed_training_ends_in_the_same_bits(tokenizer, sentences, tmp_path, points):
    rows = rows_of(tokenizer, sentences) * 6
    ends = []
    for name, begun in (("whole", None), ("resumed", str(tmp_path / "whole" / "checkpoint-2"))):
        chosen = {"points": points, "save_steps": 2}
        trainer = make_trainer(tokenizer, rows, tmp_path / name, "hybonet_tiny", 4, **chosen)
        first = {key: value.clone() for key, value in trainer.model.state_dict().items()}
        trainer.train(resume_from_checkpoint=begun)
        ends.append(trainer.model.state_dict())
    assert not torch.equal(
        first["decoder.embed_tokens.weight"], ends[0]["decoder.embed_tokens.weight"]
    )
    assert all(torch.equal(ends[1][key], value) for key, value in ends[0].items())


def small_trainer(tokenizer, sentences, out, *, arch="hybonet_tiny", storage="space", **chosen):
    """The library's own trainer with its own optimizer."""
    from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments

    from hyptrans.transformers import HyptransConfig, HyptransForConditionalGeneration

    options = {"embedding_storage": storage} if arch.startswith("hybonet") else {}
    model = HyptransForConditionalGeneration(HyptransConfig.of(tokenizer, arch, **options))
    settings = {"max_steps": 3, "report_to": [], "use_cpu": True, "save_strategy": "no"}
    return Seq2SeqTrainer(
        model,
        Seq2SeqTrainingArguments(str(out), learning_rate=1e-3, **settings, **chosen),
        train_dataset=rows_of(tokenizer, sentences[:8]),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model),
    )


def test_points_are_refused_to_an_optimizer_that_moves_them_off_their_space(
    tokenizer, sentences, tmp_path
):
    trainer = small_trainer(tokenizer, sentences, tmp_path, storage="manifold")
    with pytest.raises(UserError, match=r"encoder\.embed_tokens\.weight .*RiemannianAdam"):
        trainer.train()
    small_trainer(tokenizer, sentences, tmp_path).train()


def test_noise_on_embeddings_is_refused_where_they_are_points(tokenizer, sentences, tmp_path):
    trainer = small_trainer(tokenizer, sentences, tmp_path, neftune_noise_alpha=5.0)
    with pytest.raises(UserError, match="neftune_noise_alpha moves points"):
        trainer.train()
    twin = {"arch": "euclidean_prenorm_tiny", "neftune_noise_alpha": 5.0}
    small_trainer(tokenizer, sentences, tmp_path, **twin).train()
