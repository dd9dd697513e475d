"""Data folders that ``fairseq-preprocess`` writes: what is missing in them, or damaged."""

from pathlib import Path
from typing import Any

from hyptrans_startup.data.sets import AGAIN
from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import Call, after, told

MOST_WORDS, MOST_BYTES = 1_000_000, 64 << 20
"""Of a dictionary: every line costs some 300 bytes of memory."""


def no_language_pair(infer: Call, path: str) -> Any:
    """A traceback for a data folder that is missing or empty."""
    if not Path(path).is_dir():
        raise UserError(f"data folder {path} does not exist; fairseq-preprocess writes one")
    pair = infer(path)
    if pair == (None, None):
        raise UserError(f"data folder {path} holds no pair of languages; {AGAIN}")
    return pair


def check_dictionary(path: Path) -> None:
    """Check what can be known of a dictionary before it is read.

    Raises:
        UserError: it is no regular file, or longer than any dictionary.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no regular file and no dictionary of fairseq; {AGAIN}")
    if not path.exists():
        raise UserError(
            f"{path} does not exist; give the folder that fairseq-preprocess wrote and its "
            "languages"
        )
    long = path.stat().st_size > MOST_BYTES
    if not long:
        with open(path, "rb") as file:
            long = sum(1 for _ in file) > MOST_WORDS
    if long:
        raise UserError(
            f"{path} has more than {MOST_WORDS:,} lines or {MOST_BYTES:,} bytes, as no dictionary "
            "has: make one with fewer words, as subwords are"
        )


def bad_dictionary(load: Call, cls: type, f: Any) -> Any:
    """A traceback for a dictionary that is missing or cut short.

    Nothing of the file is shown: a stranger's folder may have a link in its place.
    """
    if isinstance(f, str):
        check_dictionary(Path(f))
    try:
        dictionary = load(cls, f)
    except (ValueError, RuntimeError) as error:
        raise UserError(
            f"{f} is no dictionary of fairseq: a line is no symbol and its count, or a symbol "
            f"stands there twice; {AGAIN}"
        ) from error
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
