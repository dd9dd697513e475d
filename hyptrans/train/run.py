"""A run: its folder, the training, the choice of parameters, and the final model folder.

The folder holds ``run.yaml`` (all settings), ``checkpoint-N`` (the best and the last validations;
the run resumes from the newest) and, at the end, ``model``.
"""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file

from hyptrans.data import manifest
from hyptrans.data.indexed import IndexedSet
from hyptrans.evaluation import scores
from hyptrans.geometry import lorentz
from hyptrans.inference.batches import by_length, padded
from hyptrans.inference.contents import AVERAGED, Contents
from hyptrans.inference.options import LENGTH_STEP, limits
from hyptrans.inference.options import Settings as SearchSettings
from hyptrans.inference.search import search
from hyptrans.inference.sharing import folder as model_folder
from hyptrans.optim import RiemannianAdam
from hyptrans.support.errors import UserError
from hyptrans.train.batches import Pairs, collate
from hyptrans.train.settings import SCHEDULES, Settings
from hyptrans.train.trainer import TrainedModel, Trainer, Validations, bleu_of
from hyptrans.transformers import HyptransConfig, HyptransTokenizer

BETAS = (0.9, 0.98)
"""Adam's betas in Vaswani et al. 2017, sec. 5.3."""
BATCH_TOKENS = 4000
"""Source tokens translated at once."""


class Run:
    """A training of one architecture on one data folder.

    Args:
        settings: settings of the training.
        architecture: its name.
        options: options of the architecture.
        data: folder that ``hyptrans prepare`` wrote.
        out: folder of the run.

    Raises:
        UserError: the data cannot be used, or settings contradict each other.
    """

    def __init__(
        self,
        settings: Settings,
        architecture: str,
        options: Mapping[str, Any],
        data: Path,
        out: Path,
    ) -> None:
        found = manifest.read(data)
        if found is None:
            raise UserError(
                f"{data} has no manifest.json: name a folder that hyptrans prepare wrote"
            )
        self.settings, self.data, self.out = settings, data, out
        self.tokenizer = HyptransTokenizer.from_data(data, *found.languages)
        transformers.utils.logging.disable_progress_bar()
        transformers.set_seed(settings.seed)
        self.config = HyptransConfig.of(self.tokenizer, architecture, **options)
        self.model = TrainedModel(self.config)
        self.model.label_smoothing = settings.label_smoothing
        if settings.precision == "float64":
            self.model.double()
        self.words = self.tokenizer.dictionaries
        # the search needs more symbols than a configuration records
        self.model.encoder.dictionary, self.model.decoder.dictionary = self.words
        self.cuda = torch.cuda.is_available() and settings.device != "cpu"
        if settings.device not in ("auto", "cpu") and not self.cuda:
            raise UserError(f"--device {settings.device}: torch finds none here; leave it out")
        self.bleus: dict[int, float] = {}
        """BLEU of the validations by number of updates."""

    def pairs(self, name: str) -> Pairs:
        """Return the pairs of a set: ``train``, ``valid`` or ``test``."""
        source, target = self.tokenizer.languages
        stem = f"{name}.{source}-{target}"
        sources, targets = (
            IndexedSet(self.data / "data-bin" / f"{stem}.{one}") for one in (source, target)
        )
        longest = (self.model.encoder.longest, self.model.decoder.longest)
        found = Pairs(sources, targets, *longest)
        if found.skipped:
            sys.stderr.write(
                f"{name}: {found.skipped} pairs are too long for the model, left out\n"
            )
        if not len(found):
            raise UserError(f"{self.data}: its set {name} has no pair that the model can take")
        return found

    def train(self) -> list[float]:
        """Train, or resume, until the last update or until patience runs out.

        Returns:
            The logged losses per target token, base e.
        """
        validation, chosen = self.pairs("valid"), self.settings
        pad = self.words[0].pad()
        rates = {"lr": float(chosen.lr or 0), "weight_decay": chosen.weight_decay}
        trainer = Trainer(
            lambda model: self.bleu(model, validation).value,
            chosen.max_tokens,
            model=self.model,
            args=self._arguments(),
            train_dataset=self.pairs("train"),
            eval_dataset=validation,
            data_collator=lambda rows: collate(rows, pad),
            callbacks=[Validations(chosen)],
            optimizers=(RiemannianAdam(self.model.parameters(), betas=BETAS, **rates), None),
        )
        # the library prints losses and validations to standard output
        with redirect_stdout(sys.stderr):
            trainer.train(resume_from_checkpoint=newest(self.out))
        self.bleus = bleu_of(trainer.state)
        return [line["loss"] for line in trainer.state.log_history if "loss" in line]

    def _arguments(self) -> Any:
        chosen = self.settings
        return transformers.Seq2SeqTrainingArguments(
            output_dir=str(self.out),
            max_steps=chosen.max_update,
            gradient_accumulation_steps=chosen.update_freq,
            lr_scheduler_type=SCHEDULES[chosen.lr_scheduler],
            warmup_steps=chosen.warmup_updates,
            max_grad_norm=chosen.clip_norm,
            # a strategy lets the library note the best checkpoint; Validations decides when to save
            save_strategy="epoch",
            metric_for_best_model="eval_bleu",
            greater_is_better=True,
            save_total_limit=chosen.keep_last_epochs + 1,
            logging_steps=chosen.log_interval,
            seed=chosen.seed,
            use_cpu=not self.cuda,
            bf16=chosen.precision == "bf16",
            fp16=chosen.precision == "fp16",
            report_to=chosen.report_to,
            remove_unused_columns=False,
            # a log file gets a line for each loss, a terminal an animated bar
            disable_tqdm=not sys.stderr.isatty(),
            # batches are sized by tokens, so the library cannot even them out by sentences
            accelerator_config={"even_batches": False, "split_batches": False},
        )

    def finish(self) -> dict[str, Any]:
        """Choose the best validation or the average of the last ones, by BLEU on that set.

        Returns:
            Facts about the model, for its card.
        """
        kept = [updates for updates in self.bleus if self._parameters(updates).is_file()]
        best, last = max(kept, key=self.bleus.__getitem__), kept[-self.settings.keep_last_epochs :]
        chosen, of_best = [best], self.bleus[best]
        if len(last) > 1:
            self.set_mean(last)
            of_average = self.bleu(self.model, self.pairs("valid")).value
            sys.stderr.write(
                f"validation BLEU {of_best:.2f} after {best} updates, {of_average:.2f} for "
                f"the average of those after {', '.join(map(str, last))}\n"
            )
            chosen = last if of_average > of_best else chosen
        self.set_mean(chosen)
        of_test = self.bleu(self.model, self.pairs("test"))
        score = {"name": "BLEU", "value": of_test.value, "signature": of_test.signature}
        return {
            "updates": max(chosen),
            **({AVERAGED: chosen} if len(chosen) > 1 else {}),
            "beam": self.settings.beam,
            "scores": [score],
        }

    def set_mean(self, updates: Sequence[int]) -> None:
        """Set the model to means of parameters, and centroids of points (HyboNet eq. 4)."""
        files = [load_file(self._parameters(number)) for number in updates]
        own = self.model.state_dict(keep_vars=True)
        for name in files[0]:
            total = torch.stack([one[name].double() for one in files]).mean(0)
            manifold = getattr(own[name], "manifold", None)
            total = total if manifold is None else lorentz.normalize(total, c=manifold.c)
            own[name].data.copy_(total)

    def _parameters(self, updates: int) -> Path:
        return self.out / f"checkpoint-{updates}" / "model.safetensors"

    def write(self, folder: Path, facts: Mapping[str, Any]) -> None:
        """Write the model folder with its card."""
        parameters = self.model.float().state_dict()
        self.model.config.facts = dict(facts)
        contents = Contents(
            str(folder),
            str(self.config.architecture),
            dict(self.config.options or {}),
            self.tokenizer.languages,
            self.words,
            {name: tensor.detach().cpu() for name, tensor in parameters.items()},
            self.tokenizer.rules,
            facts,
        )
        card = self.model.card(self.out.resolve().name, folder.name)
        model_folder.write(contents, folder, card=card, precision="full")

    def bleu(self, model: TrainedModel, pairs: Pairs) -> scores.Score:
        """Return the BLEU of a set's translations, as text, against its targets."""
        was_training = model.training
        model.eval()
        rows = [row["input_ids"].tolist() for row in pairs]  # type: ignore[attr-defined]
        found = self._translate(model, rows)
        wanted = [self._text(row["labels"].tolist()) for row in pairs]  # type: ignore[attr-defined]
        model.train(was_training)
        language = self.tokenizer.languages[1]
        return scores.bleu(found, wanted, tokenize=scores.tokenizer_for(language))

    def _translate(self, model: TrainedModel, rows: Sequence[list[int]]) -> list[str]:
        options = SearchSettings(beam=self.settings.beam)
        longest = limits(rows, {}, model.decoder.longest - 1)
        found = [""] * len(rows)
        for batch in by_length(
            [*map(len, rows)], BATCH_TOKENS, "translate", None, step=LENGTH_STEP
        ):
            source = padded([rows[i] for i in batch], self.words[0], left=True).to(model.device)
            made = search([model], source, longest[batch[0]], options)
            for i, hypotheses in zip(batch, made, strict=True):
                found[i] = self._text(hypotheses[0].tokens.tolist())
        return found

    def _text(self, tokens: Sequence[int]) -> str:
        words = self.words[1]
        return self.tokenizer.convert_tokens_to_string(
            [words[t] for t in tokens if t != words.eos()]
        )


def newest(out: Path) -> str | None:
    """Return the newest complete checkpoint of a run; remove what a kill left of others."""
    found = sorted(out.glob("checkpoint-*"), key=lambda path: int(path.name.partition("-")[2]))
    while found:
        try:
            json.loads((found[-1] / "trainer_state.json").read_text(encoding="utf-8"))
            return str(found[-1])
        except (OSError, ValueError):
            shutil.rmtree(found.pop())
    return None
