"""Data folders that ``fairseq-preprocess`` writes: what is missing in them, or damaged."""

from io import StringIO
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


def one_language(setup: Call, cls: type, cfg: Any, *args: Any, **kwargs: Any) -> Any:
    """``--source-lang`` or ``--target-lang`` without the other: not a word, and both are others."""
    typed = {name: getattr(cfg, name) for name in ("source_lang", "target_lang")}
    made = setup(cls, cfg, *args, **kwargs)
    for name, language in typed.items():
        if language not in (None, getattr(cfg, name)):
            raise UserError(
                f"--{name.replace('_', '-')} {language} is not that of data folder {cfg.data}, "
                f"{cfg.source_lang}-{cfg.target_lang}: name both languages, or none"
            )
    return made


def read_dictionary(path: Path) -> str:
    """Read a dictionary's lines, once, with all that can be known before they are looked at.

    Raises:
        UserError: it is no regular file, no UTF-8 text, or longer than any dictionary.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no regular file and no dictionary of fairseq; {AGAIN}")
    if not path.exists():
        raise UserError(
            f"{path} does not exist; give the folder that fairseq-preprocess wrote and its "
            "languages"
        )
    with open(path, "rb") as file:
        content = file.read(MOST_BYTES + 1)
    lines = ""
    if len(content) <= MOST_BYTES:  # else a character may be cut
        try:
            # as Python reads the ends of lines
            lines = content.decode().replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError as error:
            raise UserError(f"{path} is not UTF-8 text; {AGAIN}") from error
    if len(content) > MOST_BYTES or lines.count("\n") > MOST_WORDS:
        raise UserError(
            f"{path} has more than {MOST_WORDS:,} lines or {MOST_BYTES:,} bytes, as no dictionary "
            "has: make one with fewer words, as subwords are"
        )
    return lines


def bad_dictionary(load: Call, cls: type, f: Any) -> Any:
    """A traceback for a dictionary that is missing or cut short.

    Nothing of the file is shown: a stranger's folder may have a link in its place.
    """
    try:
        dictionary = load(cls, StringIO(read_dictionary(Path(f))) if isinstance(f, str) else f)
    except (ValueError, RuntimeError) as error:
        raise UserError(
            f"{f} is no dictionary of fairseq: a line is no symbol and its count, or a symbol "
            f"stands there twice; {AGAIN}"
        ) from error
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
