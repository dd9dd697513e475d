"""Seq2SeqTrainer trains our models, and refuses what would move points off their space."""

import pytest

from hyptrans.support.errors import UserError

pytest.importorskip("accelerate")


def rows_of(tokenizer, texts):
    made = tokenizer(texts, text_target=texts)
    pairs = zip(made["input_ids"], made["labels"], strict=True)
    return [{"input_ids": source, "labels": target} for source, target in pairs]


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
