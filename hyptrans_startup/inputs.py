"""Checks of what the ``fairseq-*`` commands read: text, data folders and checkpoints.

fairseq meets damaged input with an unrelated traceback, or not at all: files of different length
give misaligned training data.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from types import ModuleType, SimpleNamespace
from typing import Any

from hyptrans_startup.errors import UserError

AGAIN = "write the data folder again with fairseq-preprocess"


@contextmanager
def misaligned_text(module: ModuleType) -> Iterator[None]:
    """fairseq-preprocess takes an empty file, and two sides of different length, without a word."""
    yield
    stock = module.main

    def main(args: Any) -> None:
        # of the training text fairseq takes one name, with commas if it has some
        others = f"{args.validpref or ''},{args.testpref or ''}".split(",")
        for prefix in filter(None, [args.trainpref, *others]):
            check_text(prefix, args)
        try:
            stock(args)
        except FileExistsError as error:
            raise UserError(
                f"{error} is there already; give another --destdir, "
                "or keep the dictionary with --srcdict and --tgtdict"
            ) from error

    vars(module)["main"] = main


def check_text(prefix: str, args: Any) -> None:
    """Raise for a missing, an empty and a misaligned file of one prefix."""
    languages = [args.source_lang] if args.only_source else [args.source_lang, args.target_lang]
    lines = {}
    for language in languages:
        path = prefix if language is None else f"{prefix}.{language}"
        try:
            # as fairseq reads it: a carriage return ends a line too
            with open(path, encoding="utf-8") as text:
                lines[path] = sum(1 for _ in text)
        except FileNotFoundError as error:
            raise UserError(
                f"{path} does not exist; --source-lang and --target-lang are the "
                "endings of the files"
            ) from error
        except UnicodeDecodeError as error:
            raise UserError(f"{path} is not UTF-8 text ({error.reason}); convert it") from error
        if lines[path] == 0:
            raise UserError(f"{path} is empty; it must have one sentence a line")
    if len(set(lines.values())) > 1:
        counts = ", ".join(f"{path} has {count}" for path, count in lines.items())
        raise UserError(
            f"the sides differ in their number of lines: {counts}; line n of one must "
            "be the translation of line n of the other"
        )


@contextmanager
def no_language_pair(module: ModuleType) -> Iterator[None]:
    """A traceback for a data folder that is missing or empty."""
    yield
    stock = module.infer_language_pair

    def infer_language_pair(path: str) -> Any:
        if not Path(path).is_dir():
            raise UserError(f"data folder {path} does not exist; fairseq-preprocess writes one")
        pair = stock(path)
        if pair == (None, None):
            raise UserError(f"data folder {path} holds no pair of languages; {AGAIN}")
        return pair

    vars(module)["infer_language_pair"] = infer_language_pair


@contextmanager
def bad_dictionary(module: ModuleType) -> Iterator[None]:
    """A traceback for a dictionary that is missing or cut short."""
    yield
    stock = module.Dictionary.load.__func__

    def load(cls: type, f: Any) -> Any:
        if isinstance(f, str) and Path(f).is_char_device():
            raise UserError(f"{f} is a device and no dictionary of fairseq; {AGAIN}")
        try:
            dictionary = stock(cls, f)
        except FileNotFoundError as error:
            raise UserError(
                f"{f} does not exist; give the folder that fairseq-preprocess wrote "
                "and its languages"
            ) from error
        except (ValueError, RuntimeError) as error:
            raise UserError(f"{f} is no dictionary of fairseq ({error}); {AGAIN}") from error
        except Exception as error:
            # fairseq's own, of no class
            if not str(error).startswith("Incorrect encoding"):
                raise
            raise UserError(f"{f} is not UTF-8 text; {AGAIN}") from error
        if len(dictionary) == dictionary.nspecial:
            raise UserError(f"{f} has no words; {AGAIN}")
        return dictionary

    module.Dictionary.load = classmethod(load)


@contextmanager
def no_such_set(module: ModuleType) -> Iterator[None]:
    """A traceback for a data folder without the set, or with sides that do not go together."""
    yield
    stock = module.load_langpair_dataset

    def load_langpair_dataset(
        data_path: str, split: str, src: str, src_dict: Any, tgt: str, *args: Any, **kwargs: Any
    ) -> Any:
        try:
            return stock(data_path, split, src, src_dict, tgt, *args, **kwargs)
        except FileNotFoundError as error:
            files = Path(data_path).glob(f"*.*-*.{src}.idx")
            sets = ", ".join(sorted(path.name.split(".")[0] for path in files)) or "none"
            raise UserError(
                f"data folder {data_path} has no set '{split}' for {src}-{tgt} "
                f"(found for {src}: {sets}); {AGAIN}"
            ) from error
        except AssertionError as error:
            raise UserError(f"data folder {data_path}, set '{split}': {error}; {AGAIN}") from error

    vars(module)["load_langpair_dataset"] = load_langpair_dataset


@contextmanager
def no_target_side(module: ModuleType) -> Iterator[None]:
    """``forward() missing 1 required positional argument`` in training without target files.

    To translate without them is in order, so the question is asked where training begins.
    """
    yield
    stock = module.Trainer.get_train_iterator

    def get_train_iterator(self: Any, *args: Any, **kwargs: Any) -> Any:
        iterator = stock(self, *args, **kwargs)
        task = self.task
        for name, dataset in task.datasets.items():
            if getattr(dataset, "tgt", dataset) is None:
                raise UserError(
                    f"data folder {task.cfg.data} has no target side ({task.cfg.target_lang}) of "
                    f"the set '{name}'; {AGAIN}"
                )
        return iterator

    module.Trainer.get_train_iterator = get_train_iterator


@contextmanager
def bad_checkpoint(module: ModuleType) -> Iterator[None]:
    """Tracebacks for a checkpoint that is missing, cut short, unsafe or of another model."""
    yield
    stock_load, stock_ensemble = module.load_checkpoint_to_cpu, module.load_model_ensemble_and_task

    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return stock_load(path, *args, **kwargs)
        except UnpicklingError as error:
            asked = re.search(r"GLOBAL (\S+)", str(error))
            if asked is None:
                raise unreadable(path, "not a pickle that torch writes") from error
            raise UserError(
                f"checkpoint {path} is refused: loading it would call {asked[1]}, and a checkpoint "
                "of fairseq holds only tensors, numbers and options; use one you can trust"
            ) from error
        except (RuntimeError, EOFError, LookupError, ValueError, TypeError) as error:
            raise unreadable(path, f"{type(error).__name__}: {error}") from error

    def load_model_ensemble_and_task(filenames: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return stock_ensemble(filenames, *args, **kwargs)
        except UserError as error:
            raise misfit(", ".join(filenames), error) from error
        except RuntimeError as error:
            if not str(error).startswith("Error(s) in loading state_dict"):
                raise
            raise misfit(", ".join(filenames), error) from error

    vars(module).update(
        load_checkpoint_to_cpu=load_checkpoint_to_cpu,
        load_model_ensemble_and_task=load_model_ensemble_and_task,
    )


@contextmanager
def other_architecture(module: ModuleType) -> Iterator[None]:
    """Going on from a checkpoint of another model: two tracebacks, or not a word."""
    yield
    stock = module.Trainer.load_checkpoint

    def load_checkpoint(
        self: Any, filename: str, reset_optimizer: bool = False, *args: Any, **kwargs: Any
    ) -> Any:
        utils = module.checkpoint_utils
        read = utils.load_checkpoint_to_cpu

        def checked(path: str, *of: Any, **options: Any) -> Any:
            state = read(path, *of, **options)
            check_formulas(path, state, self)
            return state

        try:
            # without the optimizer's state parameters are only a start
            utils.load_checkpoint_to_cpu = read if reset_optimizer else checked
            return stock(self, filename, reset_optimizer, *args, **kwargs)
        except Exception as error:
            # fairseq raises a bare one while it handles what torch found
            if type(error) is not Exception or error.__context__ is None:
                raise
            way_on = ", or another --save-dir for a new training"
            raise misfit(filename, error.__context__, way_on) from error
        finally:
            utils.load_checkpoint_to_cpu = read

    module.Trainer.load_checkpoint = load_checkpoint


def check_formulas(path: str, state: Mapping[str, Any], trainer: Any) -> None:
    """Refuse parameters that fit the model and were trained with other formulas.

    Options that parameters of the same shapes depend on have ``in_formula`` among the metadata of
    their field of the model's configuration.

    Raises:
        UserError: names the first option that differs.
    """
    config = getattr(type(trainer.get_model()), "__dataclass", None)
    model = (state.get("cfg") or {}).get("model") or state.get("args")
    stored = model if isinstance(model, Mapping) else vars(model or SimpleNamespace())
    for each in fields(config) if is_dataclass(config) else ():
        before, now = (_meant(each.name, values) for values in (stored, trainer.cfg.model))
        if not each.metadata.get("in_formula") or None in (before, now):
            continue
        if before != now:
            raise UserError(
                f"checkpoint {path} was trained with --{each.name.replace('_', '-')} {before} and "
                f"not {now}: name another --save-dir for a new training, or begin with its "
                "parameters by --finetune-from-model"
            )


def _meant(name: str, values: Any) -> Any:
    """An option's value; where the decoder has none of its own, the encoder's."""
    get = values.get if isinstance(values, Mapping) else partial(getattr, values)
    found = get(name, None)
    return get(name.replace("decoder_", "encoder_"), None) if found is None else found


def unreadable(path: str, reason: str) -> UserError:
    """Return the error for a file that is no checkpoint, or no longer one."""
    return UserError(
        f"checkpoint {path} is cut short or was not written by fairseq "
        f"({textwrap.shorten(reason, 90)}); take another one or train again"
    )


def misfit(path: str, error: BaseException, way_on: str = "") -> UserError:
    """Return the error for parameters that do not belong to the model, with the first of them."""
    if isinstance(error, UserError):
        if str(error).startswith("checkpoint "):
            return error
        return UserError(f"checkpoint {path} cannot be used: {error}")
    lines = str(error).splitlines()
    reason = textwrap.shorten(lines[1] if len(lines) > 1 else f"no {error}", 240)
    return UserError(
        f"checkpoint {path} does not fit the model ({reason}); "
        f"use the --arch, the sizes and the dictionaries it was trained with{way_on}"
    )
