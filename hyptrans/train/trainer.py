"""The library's training loop with fairseq's loss, batches by tokens and validation by BLEU."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import Seq2SeqTrainer, TrainerCallback

from hyptrans.kernels.loss import label_smoothed_cross_entropy
from hyptrans.train.batches import TokenBatches
from hyptrans.train.settings import Settings
from hyptrans.transformers.model import IGNORED, HyptransForConditionalGeneration


class TrainedModel(HyptransForConditionalGeneration):
    """A model whose forward pass returns only the loss and never holds a batch's logits in memory.

    Shapes: ``input_ids`` ``(batch, source length)``, ``labels`` ``(batch, target length)`` -> the
    label-smoothed loss and the loss of the labels alone, base e, ``()`` each: sums over labels,
    divided by ``num_items_in_batch`` if given.
    """

    label_smoothing = 0.0

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, labels: Tensor, num_items_in_batch: Any = None
    ) -> dict[str, Tensor]:
        memory, padding = self.encoder.memory(input_ids)
        tokens = self.prepare_decoder_input_ids_from_labels(labels)
        states = self.decoder(tokens, memory, padding)
        real = labels.flatten().ne(IGNORED).nonzero().squeeze(-1)
        features, table = self.decoder.logits.factors(states[-1].flatten(0, 1)[real])
        loss, nll = label_smoothed_cross_entropy(
            features, table, labels.flatten()[real], smoothing=self.label_smoothing
        )
        items = 1 if num_items_in_batch is None else num_items_in_batch
        return {"loss": loss / items, "nll": nll / items}


class Trainer(Seq2SeqTrainer):
    """Trains a :class:`TrainedModel` on :class:`~hyptrans.train.batches.Pairs`.

    Args:
        bleu: returns a model's BLEU on the validation set.
        max_tokens: largest number of tokens of a batch on either side.
        options: options of the library's trainer.
    """

    def __init__(self, bleu: Callable[[Any], float], max_tokens: int, **options: Any) -> None:
        self.bleu, self.max_tokens = bleu, max_tokens
        super().__init__(**options)

    def get_train_dataloader(self) -> Any:
        parts = self.args.world_size * self.args.gradient_accumulation_steps
        return self.accelerator.prepare(self._loader(self.train_dataset, self.args.seed, parts))

    def _loader(self, pairs: Any, seed: int, parts: int = 1) -> DataLoader:
        return DataLoader(
            pairs,
            batch_sampler=TokenBatches(pairs.sizes, self.max_tokens, seed, parts),
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Return perplexity and BLEU on the validation set, computed by the first process."""
        figures = [0.0, 0.0]
        if self.is_world_process_zero():
            model = self.accelerator.unwrap_model(self.model)
            figures = [self._perplexity(model), self.bleu(model)]
        if self.args.world_size > 1:
            from accelerate.utils import broadcast_object_list

            broadcast_object_list(figures)
        metrics = {"eval_ppl": round(figures[0], 3), "eval_bleu": round(figures[1], 2)}
        self.log({**metrics, "update": self.state.global_step})
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    @torch.no_grad()
    def _perplexity(self, model: Any) -> float:
        """Return the perplexity per token of the validation set, ends of sentences included."""
        total, count = 0.0, 0
        was_training = model.training
        model.eval()
        for inputs in self._loader(self.eval_dataset, seed=0):
            inputs = self._prepare_inputs(inputs)
            with self.compute_loss_context_manager():
                total += float(model(**inputs)["nll"])
            count += int(inputs["labels"].ne(IGNORED).sum())
        model.train(was_training)
        return math.exp(min(total / max(count, 1), 100.0))


class Validations(TrainerCallback):
    """Validates and saves at ends of epochs, after each interval and at the end; stops by patience.

    The library keeps the best and the newest checkpoints. Every process counts for itself, so that
    all of them stop together.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        done, interval = state.global_step, self.settings.save_interval_updates
        due = done % interval == 0 or done == self.settings.max_update
        control.should_evaluate = control.should_save = due

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        since = state.global_step - max(bleu_of(state), default=0)
        due = since >= self.settings.validate_interval_updates
        control.should_evaluate = control.should_save = due

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        values = [*bleu_of(state).values()]
        since = len(values) - 1 - values.index(max(values))
        control.should_training_stop |= 0 < self.settings.patience <= since


def bleu_of(state: Any) -> dict[int, float]:
    """Return the BLEU of each validation of a training by its number of updates, in order."""
    scored = (line for line in state.log_history if "eval_bleu" in line)
    return {line["step"]: line["eval_bleu"] for line in scored}
