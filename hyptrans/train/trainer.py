"""The library's training loop with fairseq's loss, batches by tokens and validation by BLEU."""

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import Seq2SeqTrainer, TrainerCallback, get_scheduler

from hyptrans.kernels.loss import label_smoothed_cross_entropy
from hyptrans.optim import RiemannianAdam
from hyptrans.train.batches import IGNORED, Pairs, TokenBatches
from hyptrans.transformers import HyptransForConditionalGeneration

_SCHEDULES = {"polynomial_decay": "linear", "inverse_sqrt": "inverse_sqrt", "fixed": "constant"}
"""The library's name of each schedule."""


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
    """Trains a :class:`TrainedModel` on :class:`Pairs`.

    Args:
        settings: settings of the training.
        translate: returns a model's BLEU on the validation set.
        width: dimension of an encoder state, for the schedule ``noam``.
        training: pairs to learn from.
        validation: pairs to evaluate on.
        options: options of the library's trainer.
    """

    def __init__(
        self,
        settings: Any,
        translate: Callable[[Any], float],
        width: int,
        training: Pairs,
        validation: Pairs,
        **options: Any,
    ) -> None:
        self.settings, self.translate, self.width = settings, translate, width
        self.training, self.validation = training, validation
        self._tokens, self._since = 0, time.monotonic()
        super().__init__(train_dataset=training, eval_dataset=validation, **options)

    def create_optimizer(self, model: Any = None) -> Any:
        """Create Riemannian Adam: points move on their manifold, all else as under AdamW."""
        if self.optimizer is None:
            betas = tuple(self.settings.adam_betas)
            trained: Any = self.model
            self.optimizer = RiemannianAdam(
                trained.parameters(),
                lr=self.settings.lr,
                betas=betas,
                weight_decay=self.settings.weight_decay,
            )
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Create the schedule of the learning rate, as fairseq's schedule of that name."""
        if self.lr_scheduler is None:
            optimizer, name = optimizer or self.optimizer, self.settings.lr_scheduler
            warmup = self.settings.warmup_updates
            if name == "noam":
                scale = self.width**-0.5
                self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
                    optimizer, lambda n: scale * min((n + 1) ** -0.5, (n + 1) * warmup**-1.5)
                )
            else:
                self.lr_scheduler = get_scheduler(
                    _SCHEDULES[name], optimizer, warmup, num_training_steps
                )
        return self.lr_scheduler

    def get_train_dataloader(self) -> Any:
        parts = self.args.world_size * self.args.gradient_accumulation_steps
        batches = TokenBatches(
            self.training.sizes, self.settings.max_tokens, self.settings.seed, parts
        )
        return self.accelerator.prepare(self._loader(self.training, batches))

    def _loader(self, pairs: Pairs, batches: TokenBatches) -> DataLoader:
        return DataLoader(
            pairs,
            batch_sampler=batches,
            collate_fn=self.data_collator,
            num_workers=self.settings.num_workers,
            pin_memory=self.args.dataloader_pin_memory,
        )

    def compute_loss(
        self,
        model: Any,
        inputs: Any,
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        self._tokens += int(inputs["labels"].ne(IGNORED).sum()) * self.args.world_size
        loss = model(**inputs, num_items_in_batch=num_items_in_batch)["loss"]
        # gradients are averaged over processes, but the items counted are those of all of them
        return loss * self.args.world_size

    def log(self, logs: dict[str, float], *given: Any, **options: Any) -> None:
        """Add the target tokens per second since the last line with a loss, and log."""
        now = time.monotonic()
        if "loss" in logs:
            logs["tokens_per_second"] = round(self._tokens / (now - self._since), 1)
            self._tokens, self._since = 0, now
        super().log(logs, *given, **options)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Return perplexity and BLEU on the validation set, computed by the first process."""
        figures = [0.0, 0.0]
        if self.is_world_process_zero():
            model = self.accelerator.unwrap_model(self.model)
            figures = [self._perplexity(model), self.translate(model)]
        if self.args.world_size > 1:
            from accelerate.utils import broadcast_object_list

            broadcast_object_list(figures)
        metrics = {"eval_ppl": round(figures[0], 3), "eval_bleu": round(figures[1], 2)}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    @torch.no_grad()
    def _perplexity(self, model: Any) -> float:
        """Return the perplexity per token of the validation set, ends of sentences included."""
        batches = TokenBatches(self.validation.sizes, self.settings.max_tokens, seed=0)
        total, count = 0.0, 0
        was_training = model.training
        model.eval()
        for inputs in self._loader(self.validation, batches):
            inputs = self._prepare_inputs(inputs)
            with self.compute_loss_context_manager():
                total += float(model(**inputs)["nll"])
            count += int(inputs["labels"].ne(IGNORED).sum())
        model.train(was_training)
        return math.exp(min(total / max(count, 1), 100.0))


class Progress(TrainerCallback):
    """A bar of updates with loss and target tokens per second, and a line for each validation."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            options = {"initial": state.global_step, "unit": " updates", "desc": "train"}
            interval = 0.2 if sys.stderr.isatty() else 10.0
            self.bar = tqdm(total=state.max_steps, mininterval=interval, **options)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.bar.update(state.global_step - self.bar.n)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if not state.is_world_process_zero or not logs:
            return
        if "eval_bleu" in logs:
            self.bar.write(
                f"update {state.global_step}: validation perplexity {logs['eval_ppl']:.2f}, "
                f"BLEU {logs['eval_bleu']:.2f}",
                file=sys.stderr,
            )
        elif "tokens_per_second" in logs:
            said = f"loss {logs['loss']:.3f}, {logs['tokens_per_second']:,.0f} tokens/s"
            self.bar.set_postfix_str(said, refresh=False)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.bar.close()
