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
from transformers import ProgressCallback, Seq2SeqTrainer

from hyptrans.kernels.products import label_smoothed_cross_entropy
from hyptrans.optim import RiemannianAdam
from hyptrans.support.errors import UserError
from hyptrans.support.progress import interval
from hyptrans.train.batches import Pairs, TokenBatches
from hyptrans.transformers.model import IGNORED, HyptransForConditionalGeneration

BETAS = (0.9, 0.98)
"""Adam's betas in Vaswani et al. 2017, sec. 5.3."""


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
    """Trains a :class:`TrainedModel` on batches of at most ``max_tokens`` tokens on either side.

    ``translate`` returns a model's BLEU on the validation set; ``options`` are the library's.
    """

    def __init__(
        self,
        translate: Callable[[Any], float],
        max_tokens: int,
        training: Pairs,
        validation: Pairs,
        **options: Any,
    ) -> None:
        self.translate, self.max_tokens = translate, max_tokens
        self.training, self.validation = training, validation
        self._tokens, self._since = 0, time.monotonic()
        super().__init__(train_dataset=training, eval_dataset=validation, **options)

    def create_optimizer(self, model: Any = None) -> Any:
        """Create Riemannian Adam: points move on their manifold, all else as under AdamW."""
        if self.optimizer is None:
            trained: Any = self.model
            rates = {"lr": self.args.learning_rate, "weight_decay": self.args.weight_decay}
            self.optimizer = RiemannianAdam(trained.parameters(), betas=BETAS, **rates)
        return self.optimizer

    def get_train_dataloader(self) -> Any:
        parts = self.args.world_size * self.args.gradient_accumulation_steps
        batches = TokenBatches(self.training.sizes, self.max_tokens, self.args.seed, parts)
        return self.accelerator.prepare(self._loader(self.training, batches))

    def _loader(self, pairs: Pairs, batches: TokenBatches) -> DataLoader:
        return DataLoader(
            pairs,
            batch_sampler=batches,
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        self._tokens += int(inputs["labels"].ne(IGNORED).sum()) * self.args.world_size
        loss = model(**inputs, num_items_in_batch=num_items_in_batch)["loss"]
        # gradients are averaged over processes, but the items counted are those of all of them
        return loss * self.args.world_size

    def log(self, logs: dict[str, float], *given: Any, **options: Any) -> None:
        """Add the target tokens per second since the last line with a loss, and log.

        Raises:
            UserError: the loss is not finite.
        """
        now = time.monotonic()
        if "loss" in logs:
            if not math.isfinite(logs["loss"]):
                raise UserError(
                    f"the loss is not finite after {self.state.global_step} updates: lower --lr or "
                    "--clip-norm, and name another --out"
                )
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
        inform = self.callback_handler.on_evaluate
        self.control = inform(self.args, self.state, self.control, metrics)
        return metrics

    @torch.no_grad()
    def _perplexity(self, model: Any) -> float:
        """Return the perplexity per token of the validation set, ends of sentences included."""
        batches = TokenBatches(self.validation.sizes, self.max_tokens, seed=0)
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


class Progress(ProgressCallback):
    """A bar of updates with loss and target tokens per second, and a line for each validation."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.current_step = state.global_step
        if state.is_world_process_zero:
            options = {"initial": state.global_step, "unit": " updates", "desc": "train"}
            self.training_bar: Any = tqdm(total=state.max_steps, mininterval=interval(), **options)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if not state.is_world_process_zero or not logs:
            return
        if "eval_bleu" in logs:
            self.training_bar.write(
                f"update {state.global_step}: validation perplexity {logs['eval_ppl']:.2f}, "
                f"BLEU {logs['eval_bleu']:.2f}",
                file=sys.stderr,
            )
        elif "tokens_per_second" in logs:
            said = f"loss {logs['loss']:.3f}, {logs['tokens_per_second']:,.0f} tokens/s"
            self.training_bar.set_postfix_str(said, refresh=False)

    def close(self) -> None:
        """End the bar's line, also after an error."""
        if self.training_bar is not None:
            self.training_bar.close()
