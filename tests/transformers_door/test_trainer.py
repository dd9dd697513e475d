import pytest
import torch
from transformers import (
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    get_linear_schedule_with_warmup,
    set_seed,
)

from hyptrans.optim import RiemannianAdam
from hyptrans.support.errors import UserError
from hyptrans.transformers import (
    HyptransConfig,
    HyptransForConditionalGeneration,
    HyptransTokenizer,
)
from tests.probing.helpers.model import prepared_folder
from tests.probing.helpers.model import sentences as drawn
from tests.train.fairseq_losses import flags_of, losses_of_fairseq

pytest.importorskip("accelerate")
SMOOTHING, RATE, BETAS, CLIP = 0.1, 5e-3, (0.9, 0.98), 0.5


def rows_of(tokenizer, texts):
    made = tokenizer(texts, text_target=texts)
    pairs = zip(made["input_ids"], made["labels"], strict=True)
    return [{"input_ids": source, "labels": target} for source, target in pairs]


def make_trainer(
    tokenizer, rows, out, arch, updates, *, points=False, warmup=100, optimizer=True, **chosen
):
    """A new model's trainer, with Riemannian Adam or the library's own optimizer.

    Its rate ends at zero, and ``chosen`` are settings of the library.
    """
    set_seed(1)
    options = {"embedding_storage": "manifold"} if points else {}
    config = HyptransConfig.of(tokenizer, arch, dropout=0.0, **options)
    model = HyptransForConditionalGeneration(config)
    optimizers = None, None
    if optimizer:
        adam = RiemannianAdam(model.parameters(), lr=RATE, betas=BETAS)
        optimizers = adam, get_linear_schedule_with_warmup(adam, warmup, updates)
    symbols = len(tokenizer.dictionaries[1])
    settings = {
        "per_device_train_batch_size": 128,
        "max_grad_norm": CLIP,
        # the library spreads over all symbols what fairseq spreads over all others
        "label_smoothing_factor": SMOOTHING * symbols / (symbols - 1),
        **{"max_steps": updates, "seed": 1, "use_cpu": True, "report_to": "none"},
        **chosen,
    }
    return Seq2SeqTrainer(
        model,
        Seq2SeqTrainingArguments(output_dir=str(out), **settings),
        train_dataset=rows,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model),
        processing_class=tokenizer,
        optimizers=optimizers,
    )


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
    data, texts = prepared_folder(tmp_path / "data"), drawn(48, seed=11)
    tokenizer = HyptransTokenizer.from_data(data, "en", "de")
    rows = rows_of(tokenizer, texts)
    chosen = {"per_device_train_batch_size": 16, "logging_steps": 1, "save_strategy": "no"}
    chosen |= {"points": points, "warmup": 4}
    trainer = make_trainer(tokenizer, rows, tmp_path / "out", "hybonet_plus_tiny", 12, **chosen)
    in_order = torch.utils.data.SequentialSampler(rows)
    monkeypatch.setattr(trainer, "_get_train_sampler", lambda *_: in_order)
    initial = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    trainer.train()
    found = [line["loss"] for line in trainer.state.log_history if "loss" in line]

    batches = [rows[start : start + 16] for start in range(0, 48, 16)]
    more = {"criterion": "label_smoothed_cross_entropy", "max_tokens": 2048, "dropout": 0}
    more["embedding_storage"] = "manifold" if points else "space"
    flags = flags_of("hybonet_plus_tiny", RATE, 12, 4, **more)
    wanted = losses_of_fairseq(data, initial, batches, flags)
    assert found == pytest.approx(wanted, rel=1e-5)
    assert len(found) == 12
    assert found[-1] < 0.9 * found[0]


def test_optimizers_that_move_points_off_their_space_are_refused(tokenizer, sentences, tmp_path):
    rows = rows_of(tokenizer, sentences[:8])
    points, space = (
        make_trainer(tokenizer, rows, tmp_path, "hybonet_tiny", 3, points=points, optimizer=False)
        for points in (True, False)
    )
    with pytest.raises(UserError, match=r"encoder\.embed_tokens\.weight .*RiemannianAdam"):
        points.train()
    space.train()


def test_embedding_noise_on_points_is_refused(tokenizer, sentences, tmp_path):
    rows, chosen = rows_of(tokenizer, sentences[:8]), {"neftune_noise_alpha": 5.0}
    points, flat = (
        make_trainer(tokenizer, rows, tmp_path, arch, 3, optimizer=False, **chosen)
        for arch in ("hybonet_tiny", "euclidean_prenorm_tiny")
    )
    with pytest.raises(UserError, match="neftune_noise_alpha moves points"):
        points.train()
    flat.train()
