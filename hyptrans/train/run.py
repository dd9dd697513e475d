"""A run: its folder, the training, the choice of parameters, and the final model folder.

The folder holds ``run.yaml`` (all settings), ``checkpoint-N`` (from which the run resumes),
``epochs`` (parameters after validations, with their scores) and, at the end, ``model``.
"""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save
from torch import Tensor
from transformers import PrinterCallback, TrainerCallback

from hyptrans.data import recorded
from hyptrans.data.indexed import IndexedSet
from hyptrans.evaluation import scores
from hyptrans.geometry import lorentz
from hyptrans.inference.batches import by_length, padded
from hyptrans.inference.contents import AVERAGED, Contents
from hyptrans.inference.options import LENGTH_STEP, limits
from hyptrans.inference.options import Settings as SearchSettings
from hyptrans.inference.search import search
from hyptrans.inference.sharing import card
from hyptrans.inference.sharing import folder as model_folder
from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file, write_json
from hyptrans.train.batches import Pairs, collate
from hyptrans.train.settings import Settings
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
        found = recorded.read(data)
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
        self.epochs = Epochs(out / "epochs", settings.keep_last_epochs)
        self.cuda = torch.cuda.is_available() and settings.device != "cpu"
        if settings.device not in ("auto", "cpu") and not self.cuda:
            raise UserError(
                f"--device {settings.device}: torch finds no such device here; leave it out"
            )
        points = [name for name, one in self.model.named_parameters() if hasattr(one, "manifold")]
        if settings.fsdp and points:
            raise UserError(
                f"--fsdp cuts parameters to pieces, and {', '.join(points)} are points, which have "
                "none: leave it out, or take --embedding-storage space"
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
            self.settings,
            lambda model: self.bleu(model, validation).value,
            width=self.model.encoder.layers[0].attention.width,
            model=self.model,
            args=self._arguments(),
            training=self.pairs("train"),
            validation=validation,
            data_collator=lambda rows: collate(rows, pad),
            callbacks=[Progress(), Validation(self.epochs, self.settings)],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=newest(self.out))
        return [line["loss"] for line in trainer.state.log_history if "loss" in line]

    def _arguments(self) -> Any:
        chosen = self.settings
        return transformers.Seq2SeqTrainingArguments(
            output_dir=str(self.out),
            max_steps=chosen.max_update,
            gradient_accumulation_steps=chosen.update_freq,
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
        """Choose the best epoch or the average of the last ones, by BLEU on the validation set.

        Returns:
            Facts about the model, for its card.
        """
        chosen, last = [self.epochs.best()], self.epochs.last()
        of_best = self.epochs.scores()[chosen[0]]["bleu"]
        if len(last) > 1:
            self.model.load_state_dict(self.epochs.mean(last, self.model))
            of_average = self.bleu(self.model, self.pairs("valid")).value
            sys.stderr.write(
                f"validation BLEU {of_best:.2f} after {chosen[0]} updates, {of_average:.2f} for "
                f"the average of those after {', '.join(map(str, last))}\n"
            )
            chosen = last if of_average > of_best else chosen
        self.model.load_state_dict(self.epochs.mean(chosen, self.model))
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
        contents = Contents(
            str(folder),
            str(self.config.architecture),
            dict(self.config.options or {}),
            self.tokenizer.languages,
            self.words,
            {name: tensor.detach().cpu() for name, tensor in self.model.state_dict().items()},
            self.tokenizer.rules,
            facts,
        )
        card_ = card.make(
            self.out.resolve().name,
            folder=folder.name,
            architecture=contents.architecture,
            languages=contents.languages,
            facts=facts,
            spaces=self.model.encoder.state_spaces(),
            parameters=sum(p.numel() for p in self.model.parameters()),
            precision="full",
        )
        model_folder.write(contents, folder, card=card_, precision="full")

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
        options, longest = (
            SearchSettings(beam=self.settings.beam),
            limits(rows, {}, model.decoder.longest - 1),
        )
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


class Epochs:
    """The best and the last parameters of a run, saved at its validations.

    Args:
        folder: holds one file for each.
        count: how many of the last to keep.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count, self._index = folder, count, folder / "scores.json"

    def scores(self) -> dict[int, dict[str, float]]:
        """Return perplexity and BLEU by number of updates."""
        if not self._index.is_file():
            return {}
        found = json.loads(self._index.read_text(encoding="utf-8"))
        return {int(updates): one for updates, one in found.items()}

    def best(self) -> int:
        """Return the number of updates with the best BLEU, the first of equals."""
        found = self.scores()
        return max(sorted(found), key=lambda updates: found[updates]["bleu"])

    def last(self) -> list[int]:
        """Return the numbers of updates of the last validations."""
        return sorted(self.scores())[-self.count :]

    def add(self, updates: int, model: torch.nn.Module, found: dict[str, float]) -> None:
        """Save a model's parameters; remove those that are neither best nor among the last."""
        self.folder.mkdir(parents=True, exist_ok=True)
        own = {name: tensor.contiguous().cpu() for name, tensor in _distinct(model).items()}
        with whole_file(self._file(updates)) as file:
            file.write(save(own))
        # after resuming from an older save, later validations are repeated
        kept = {n: one for n, one in self.scores().items() if n < updates} | {updates: found}
        write_json(self._index, {str(n): one for n, one in sorted(kept.items())})
        for path in self.folder.glob("*.safetensors"):
            if int(path.stem) not in {self.best(), *self.last()}:
                path.unlink()

    def mean(self, updates: Sequence[int], model: torch.nn.Module) -> dict[str, Tensor]:
        """Return means of parameters, and centroids of points (HyboNet eq. 4), by name."""
        files = [load_file(self._file(n)) for n in updates]
        found = {}
        for name, parameter in _distinct(model).items():
            total = torch.stack([one[name].double() for one in files]).mean(0)
            manifold = getattr(parameter, "manifold", None)
            total = total if manifold is None else lorentz.normalize(total, c=manifold.c)
            found[name] = total.to(parameter.dtype)
        every = model.state_dict(keep_vars=True)
        first = {id(one): name for name, one in reversed(every.items())}
        return {name: found[first[id(one)]] for name, one in every.items()}

    def _file(self, updates: int) -> Path:
        return self.folder / f"{updates}.safetensors"


def _distinct(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return parameters and buffers, each by the first of its names."""
    every = model.state_dict(keep_vars=True)
    first = {id(one): name for name, one in reversed(every.items())}
    return {name: one for name, one in every.items() if first[id(one)] == name}


class Validation(TrainerCallback):
    """Validates after epochs, saves the parameters, and stops a training that no longer improves.

    Every process counts for itself, so that all of them stop together; only the first one writes.

    Args:
        epochs: stores the parameters.
        settings: settings of the training.
    """

    def __init__(self, epochs: Epochs, settings: Settings) -> None:
        self.epochs, self.settings = epochs, settings
        self.bleu = {updates: one["bleu"] for updates, one in epochs.scores().items()}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # validations after the save from which the run resumes are repeated
        self.bleu = {n: bleu for n, bleu in self.bleu.items() if n <= state.global_step}

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        since = state.global_step - max(self.bleu, default=0)
        control.should_evaluate = since >= self.settings.validate_interval_updates

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.settings.max_update:
            control.should_evaluate = True

    def on_evaluate(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        metrics = given["metrics"]
        if state.is_world_process_zero:
            found = {"ppl": metrics["eval_ppl"], "bleu": metrics["eval_bleu"]}
            self.epochs.add(state.global_step, given["model"], found)
        self.bleu[state.global_step] = metrics["eval_bleu"]
        best = max(sorted(self.bleu), key=lambda updates: self.bleu[updates])
        since = sum(updates > best for updates in self.bleu)
        control.should_training_stop |= 0 < self.settings.patience <= since


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
