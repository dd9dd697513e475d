"""Seq2SeqTrainer trains hyptrans models and resumes where it stopped."""

import pytest
import torch

from hyptrans.support.errors import UserError
from tests.probing.helpers.model import prepared_folder
from tests.probing.helpers.model import sentences as drawn
from tests.train.fairseq_losses import losses_of_fairseq
from tests.transformers_door.training import fairseq_flags, make_trainer, rows_of

pytest.importorskip("accelerate")


@pytest.mark.parametrize("points", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_resumed_training_ends_bitwise_identical(tokenizer, sentences, tmp_path, points):
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


@pytest.mark.parametrize("points", [False, True])
def test_every_update_matches_fairseqs_loss(points, library, tmp_path, monkeypatch):
    from hyptrans.transformers import HyptransTokenizer

    data, texts = prepared_folder(tmp_path / "data"), drawn(48, seed=11)
    tokenizer = HyptransTokenizer.from_data(data, "en", "de")
    rows = rows_of(tokenizer, texts)
    training, how = ("hybonet_plus_tiny", 12), {"points": points, "warmup": 4}
    chosen = {"per_device_train_batch_size": 16, "logging_steps": 1, "save_strategy": "no"}
    trainer = make_trainer(tokenizer, rows, tmp_path / "out", *training, **how, **chosen)
    in_order = torch.utils.data.SequentialSampler(rows)
    monkeypatch.setattr(trainer, "_get_train_sampler", lambda *_: in_order)
    initial = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    trainer.train()
    found = [line["loss"] for line in trainer.state.log_history if "loss" in line]

    batches = [rows[start : start + 16] for start in range(0, 48, 16)]
    wanted = losses_of_fairseq(data, initial, batches, fairseq_flags(*training, **how))
    assert found == pytest.approx(wanted, rel=1e-5)
    assert len(found) == 12
    assert found[-1] < 0.9 * found[0]


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


def test_optimizers_that_move_points_off_their_space_are_refused(tokenizer, sentences, tmp_path):
    trainer = small_trainer(tokenizer, sentences, tmp_path, storage="manifold")
    with pytest.raises(UserError, match=r"encoder\.embed_tokens\.weight .*RiemannianAdam"):
        trainer.train()
    small_trainer(tokenizer, sentences, tmp_path).train()


def test_embedding_noise_on_points_is_refused(tokenizer, sentences, tmp_path):
    trainer = small_trainer(tokenizer, sentences, tmp_path, neftune_noise_alpha=5.0)
    with pytest.raises(UserError, match="neftune_noise_alpha moves points"):
        trainer.train()
    twin = {"arch": "euclidean_prenorm_tiny", "neftune_noise_alpha": 5.0}
    small_trainer(tokenizer, sentences, tmp_path, **twin).train()
