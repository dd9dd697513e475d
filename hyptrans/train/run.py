"""A run: its folder, the training, the choice of parameters, and the final model folder.

The folder holds ``run.yaml`` (all settings), ``checkpoint-N`` (from which the run resumes),
``validated`` (parameters of the best and the last validations) and, at the end, ``model``.
"""

import json
import shutil
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PrinterCallback, TrainerState

from hyptrans.data import manifest
from hyptrans.evaluation import scores
from hyptrans.inference.batches import by_length, padded
from hyptrans.inference.contents import AVERAGED, Contents
from hyptrans.inference.options import LENGTH_STEP, limits
from hyptrans.inference.options import Settings as SearchSettings
from hyptrans.inference.search import search
from hyptrans.inference.sharing import folder as model_folder
from hyptrans.layers.manifold import manifold_parameters
from hyptrans.support.errors import UserError
from hyptrans.train.batches import Pairs, collate
from hyptrans.train.settings import FILE, SCHEDULES, Settings, read
from hyptrans.train.trainer import Progress, TrainedModel, Trainer
from hyptrans.train.validations import Validations
from hyptrans.transformers import HyptransConfig, HyptransTokenizer

BATCH_TOKENS = 4000
"""Source tokens translated at once."""
STATE = "trainer_state.json"
"""File of a checkpoint, written by the library."""


class Run:
    """A training, in the folder ``out``, on a folder that ``hyptrans prepare`` wrote.

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
        try:
            self.model = TrainedModel(self.config)
        except UserError as error:
            raise UserError(f"--arch {architecture} cannot be used: {error}") from error
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
        points = manifold_parameters(self.model)
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
        languages = self.tokenizer.languages
        prefix = self.data / "data-bin" / f"{name}.{'-'.join(languages)}"
        found = Pairs(prefix, languages, self.model)
        if found.skipped:
            sys.stderr.write(f"{name}: {found.skipped} pairs too long for the model are left out\n")
        return found

    def train(self) -> None:
        """Train, or resume, until the last update or until patience runs out."""
        saved = self._saved()
        if saved is not None:
            self.kept.restore(saved)
            # the library's loop would make one more update before it looks
            if saved.global_step >= self.settings.max_update or self.kept.out_of_patience():
                return
        validation, training = self.pairs("valid"), self.pairs("train")
        if (longest := training.sizes.max()) > self.settings.max_tokens:
            raise UserError(
                f"--max-tokens {self.settings.max_tokens} is below the {longest:,} tokens of the "
                "longest training sentence: raise it"
            )
        pad = self.words[0].pad()
        trainer = Trainer(
            lambda model: self.bleu(model, validation).value,
            max_tokens=self.settings.max_tokens,
            model=self.model,
            args=self._arguments(),
            training=training,
            validation=validation,
            data_collator=lambda rows: collate(rows, pad),
            callbacks=[progress := Progress(), self.kept],
        )
        trainer.remove_callback(PrinterCallback)
        last = newest(self.out)
        for path in Path(last).glob("*.pt*") if last else ():
            if not zipfile.is_zipfile(path):
                raise UserError(
                    f"{path} is damaged: move {last} away, and the training starts anew"
                )
        try:
            trainer.train(resume_from_checkpoint=last)
        finally:
            progress.close()

    def _saved(self) -> TrainerState | None:
        last = newest(self.out)
        return TrainerState.load_from_json(f"{last}/{STATE}") if last else None

    def is_longer(self) -> bool:
        """Return whether these settings ask for more updates or patience than the last ones.

        Raises:
            UserError: they ask for fewer than the run has already had.
        """
        saved, wanted = self._saved(), self.settings.max_update
        if saved is None:
            return False
        if wanted < saved.global_step:
            raise UserError(
                f"--max-update {wanted} is below the {saved.global_step} updates that {self.out} "
                "has had: raise it, or choose another --out"
            )
        return bool(wanted > saved.max_steps) or (
            saved.global_step < wanted and self._is_more_patient()
        )

    def _is_more_patient(self) -> bool:
        file, patience = self.out / FILE, self.settings.patience
        earlier = read(file).get("patience") if file.exists() else None
        # 0 never stops a training
        return isinstance(earlier, int) and earlier > 0 and (patience == 0 or patience > earlier)

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
            # else the library replaces losses that are not finite
            logging_nan_inf_filter=False,
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
        test = self.pairs("test")
        of_test = self.bleu(self.model, test, self._references(test))
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

    def bleu(
        self, model: TrainedModel, pairs: Pairs, references: Sequence[str] | None = None
    ) -> scores.Score:
        """Return the BLEU of a set's translations against references, by default its targets."""
        was_training = model.training
        model.eval()
        rows = [row["input_ids"].tolist() for row in pairs]  # type: ignore[attr-defined]
        found = self._translate(model, rows)
        model.train(was_training)
        if references is None:
            references = [self._text(row["labels"].tolist()) for row in pairs]  # type: ignore[attr-defined]
        language = self.tokenizer.languages[1]
        return scores.bleu(found, references, tokenize=scores.tokenizer_for(language))

    def _references(self, test: Pairs) -> list[str] | None:
        """Return the raw references of the test set, or None if the folder has lost them.

        The set's targets lack unknown characters. References are lower-cased if the targets are.
        """
        path = self.data / "raw" / f"test.{self.tokenizer.languages[1]}"
        if not path.is_file():
            return None
        lines = scores.read_text(path)
        if self.tokenizer.rules.steps[1].lowercase:
            lines = [line.lower() for line in lines]
        if len(lines) != len(test.targets):
            raise UserError(
                f"{path} has {len(lines):,} lines for {len(test.targets):,} test pairs: prepare "
                "the data again"
            )
        return [lines[place] for place in test.kept]

    def _translate(self, model: TrainedModel, rows: Sequence[list[int]]) -> list[str]:
        options = SearchSettings(beam=self.settings.beam)
        longest = limits(rows, {}, model.decoder.longest - 1)
        found = [""] * len(rows)
        lengths = [*map(len, rows)]
        for batch in by_length(lengths, BATCH_TOKENS, "translate", None, step=LENGTH_STEP):
            source = padded([rows[i] for i in batch], self.words[0], left=True).to(model.device)
            made = search([model], source, longest[batch[0]], options)
            for i, hypotheses in zip(batch, made, strict=True):
                found[i] = self._text(hypotheses[0].tokens.tolist())
        return found

    def _text(self, tokens: Sequence[int]) -> str:
        words = self.words[1]
        symbols = [words[t] for t in tokens if t != words.eos()]
        return self.tokenizer.convert_tokens_to_string(symbols)


def newest(out: Path) -> str | None:
    """Return the newest complete checkpoint of a run; remove what a kill left of others."""
    found = sorted(out.glob("checkpoint-*"), key=lambda path: int(path.name.partition("-")[2]))
    while found:
        try:
            json.loads((found[-1] / STATE).read_text(encoding="utf-8"))
            return str(found[-1])
        except (OSError, ValueError):
            shutil.rmtree(found.pop())
    return None
