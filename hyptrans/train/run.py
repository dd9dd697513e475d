"""A run: its folder, the training, the choice of parameters, and the final model folder.

The folder holds ``run.yaml`` (all settings), ``checkpoint-N`` (from which the run resumes),
``validated`` (parameters of the best and the last validations) and, at the end, ``model``.
"""

import io
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import PrinterCallback, TrainerCallback

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
from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file
from hyptrans.train.batches import Pairs, collate
from hyptrans.train.settings import SCHEDULES, Settings
from hyptrans.train.trainer import Progress, TrainedModel, Trainer
from hyptrans.transformers import HyptransConfig, HyptransTokenizer

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
        self.kept = Validations(out / "validated", settings)
        self.cuda = torch.cuda.is_available() and settings.device != "cpu"
        if settings.device not in ("auto", "cpu") and not self.cuda:
            raise UserError(f"--device {settings.device}: torch finds no such device; leave it out")
        points = [name for name, one in self.model.named_parameters() if hasattr(one, "manifold")]
        if settings.fsdp and points:
            raise UserError(
                f"--fsdp splits parameters, but {', '.join(points)} are points, which cannot be "
                "split: leave it out, or take --embedding-storage space"
            )
        if settings.fsdp and not self.cuda:
            # on CPUs the library would silently copy the parameters to every process
            raise UserError("--fsdp shards parameters over GPUs, and there are none: leave it out")

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
        validation = self.pairs("valid")
        pad = self.words[0].pad()
        trainer = Trainer(
            lambda model: self.bleu(model, validation).value,
            max_tokens=self.settings.max_tokens,
            model=self.model,
            args=self._arguments(),
            training=self.pairs("train"),
            validation=validation,
            data_collator=lambda rows: collate(rows, pad),
            callbacks=[Progress(), self.kept],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=newest(self.out))
        return [line["loss"] for line in trainer.state.log_history if "loss" in line]

    def is_longer(self) -> bool:
        """Return whether these settings ask for more updates than those of the last save.

        Raises:
            UserError: they ask for fewer than the run has already had.
        """
        last = newest(self.out)
        if last is None:
            return False
        state = json.loads((Path(last) / "trainer_state.json").read_text(encoding="utf-8"))
        wanted, had = self.settings.max_update, int(state["global_step"])
        if wanted < had:
            raise UserError(
                f"--max-update {wanted} is below the {had} updates that {self.out} has had: raise "
                "it, or choose another --out"
            )
        return wanted > int(state["max_steps"])

    def _arguments(self) -> Any:
        chosen = self.settings
        return transformers.Seq2SeqTrainingArguments(
            output_dir=str(self.out),
            max_steps=chosen.max_update,
            gradient_accumulation_steps=chosen.update_freq,
            learning_rate=float(chosen.lr or 0),
            lr_scheduler_type=SCHEDULES[chosen.lr_scheduler],
            warmup_steps=chosen.warmup_updates,
            weight_decay=chosen.weight_decay,
            max_grad_norm=chosen.clip_norm,
            save_steps=chosen.save_interval_updates,
            save_total_limit=1,
            logging_steps=chosen.log_interval,
            seed=chosen.seed,
            use_cpu=not self.cuda,
            bf16=chosen.precision == "bf16",
            fp16=chosen.precision == "fp16",
            fsdp=chosen.fsdp,
            report_to=chosen.report_to,
            remove_unused_columns=False,
            disable_tqdm=True,
            # batches are sized by tokens, so the library cannot even them out by sentences
            accelerator_config={"even_batches": False, "split_batches": False},
        )

    def finish(self) -> dict[str, Any]:
        """Choose the best validation or the average of the last ones, by BLEU on that set.

        Returns:
            Facts about the model, for its card.
        """
        best, last = self.kept.best(), self.kept.last()
        chosen, of_best = [best], self.kept.bleu[best]
        if len(last) > 1:
            self.model.load_state_dict(self.kept.mean(last, self.model))
            of_average = self.bleu(self.model, self.pairs("valid")).value
            sys.stderr.write(
                f"validation BLEU {of_best:.2f} after {best} updates, {of_average:.2f} for "
                f"the average of those after {', '.join(map(str, last))}\n"
            )
            chosen = last if of_average > of_best else chosen
        self.model.load_state_dict(self.kept.mean(chosen, self.model))
        of_test = self.bleu(self.model, self.pairs("test"))
        score = {"name": "BLEU", "value": of_test.value, "signature": of_test.signature}
        return {
            "updates": max(chosen),
            **({AVERAGED: chosen} if len(chosen) > 1 else {}),
            "beam": self.settings.beam,
            "scores": [score],
        }

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


class Validations(TrainerCallback):
    """Validates at ends of epochs, keeps parameters, and stops what no longer improves.

    Every process counts for itself, so that all of them stop together; only the first one writes.

    Args:
        folder: holds a file for the best and each of the last validations.
        settings: settings of the training.

    Attributes:
        bleu: BLEU by number of updates.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        self.bleu: dict[int, float] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # validations after the save from which the run resumes are repeated
        scored = (line for line in state.log_history if "eval_bleu" in line)
        self.bleu = {line["step"]: line["eval_bleu"] for line in scored}

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        since = state.global_step - max(self.bleu, default=0)
        control.should_evaluate = since >= self.settings.validate_interval_updates

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_evaluate |= state.global_step == self.settings.max_update

    def on_evaluate(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.bleu[state.global_step] = given["metrics"]["eval_bleu"]
        if state.is_world_process_zero:
            self.save(state.global_step, given["model"])
        best = max(self.bleu, key=lambda updates: self.bleu[updates])
        since = sum(updates > best for updates in self.bleu)
        control.should_training_stop |= 0 < self.settings.patience <= since

    def save(self, updates: int, model: torch.nn.Module) -> None:
        """Save parameters; remove those that are neither the best nor among the last."""
        buffer = io.BytesIO()
        torch.save({name: one.cpu() for name, one in model.state_dict().items()}, buffer)
        with whole_file(self._file(updates)) as file:
            file.write(buffer.getbuffer())
        for path in self.folder.glob("*.pt"):
            if int(path.stem) not in {self.best(), *self.last()}:
                path.unlink()

    def best(self) -> int:
        """Return the number of updates with the best BLEU, the first of equals."""
        # a kill may have left a record without its file, which a later validation superseded
        there = [updates for updates in self.bleu if self._file(updates).is_file()]
        return max(there, key=lambda updates: self.bleu[updates])

    def last(self) -> list[int]:
        """Return the numbers of updates of the last validations."""
        there = [updates for updates in self.bleu if self._file(updates).is_file()]
        return there[-self.settings.keep_last_epochs :]

    def mean(self, updates: Sequence[int], model: torch.nn.Module) -> dict[str, Tensor]:
        """Return means of parameters, and centroids of points (HyboNet eq. 4), by name."""
        files = [torch.load(self._file(n), weights_only=True) for n in updates]
        found = {}
        for name, parameter in model.state_dict(keep_vars=True).items():
            total = torch.stack([one[name].double() for one in files]).mean(0)
            manifold = getattr(parameter, "manifold", None)
            total = total if manifold is None else lorentz.normalize(total, c=manifold.c)
            found[name] = total.to(parameter.dtype)
        return found

    def _file(self, updates: int) -> Path:
        return self.folder / f"{updates}.pt"


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
