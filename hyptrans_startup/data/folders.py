"""Data folders that ``fairseq-preprocess`` writes: what is missing in them, or damaged."""

from pathlib import Path
from typing import Any

from hyptrans_startup.data.sets import AGAIN
from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import Call, after, told


def no_language_pair(infer: Call, path: str) -> Any:
    """A traceback for a data folder that is missing or empty."""
    if not Path(path).is_dir():
        raise UserError(f"data folder {path} does not exist; fairseq-preprocess writes one")
    pair = infer(path)
    if pair == (None, None):
        raise UserError(f"data folder {path} holds no pair of languages; {AGAIN}")
    return pair


def bad_dictionary(load: Call, cls: type, f: Any) -> Any:
    """A traceback for a dictionary that is missing or cut short."""
    if isinstance(f, str) and Path(f).is_char_device():
        raise UserError(f"{f} is a device and no dictionary of fairseq; {AGAIN}")
    try:
        dictionary = load(cls, f)
    except FileNotFoundError as error:
        raise UserError(
            f"{f} does not exist; give the folder that fairseq-preprocess wrote and its languages"
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


@told(FileNotFoundError, AssertionError)
def no_such_set(
    error: Exception,
    data_path: str,
    split: str,
    src: str,
    src_dict: Any,
    tgt: str,
    *_: Any,
    **__: Any,
) -> str:
    """A traceback for a data folder without the set, or with sides that do not go together."""
    if isinstance(error, AssertionError):
        return f"data folder {data_path}, set '{split}': {error}; {AGAIN}"
    files = Path(data_path).glob(f"*.*-*.{src}.idx")
    sets = ", ".join(sorted(path.name.split(".")[0] for path in files)) or "none"
    return (
        f"data folder {data_path} has no set '{split}' for {src}-{tgt} (found for {src}: {sets}); "
        f"{AGAIN}"
    )


@after
def no_target_side(_: Any, trainer: Any, *__: Any, **___: Any) -> None:
    """``forward() missing 1 required positional argument`` in training without target files.

    Translating without target files is in order, so a training asks when it begins.
    """
    task = trainer.task
    for name, dataset in task.datasets.items():
        if getattr(dataset, "tgt", dataset) is None:
            raise UserError(
                f"data folder {task.cfg.data} has no target side ({task.cfg.target_lang}) of "
                f"the set '{name}'; {AGAIN}"
            )
