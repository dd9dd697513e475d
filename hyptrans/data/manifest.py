"""``manifest.json``: the inputs, the counts of each step, and the outputs of a finished folder.

It also says how text became subwords, so that new text can be treated alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from hyptrans.data import subwords
from hyptrans.data.moses import TextSteps
from hyptrans.support.errors import UserError
from hyptrans.support.files import read_bytes, read_json

NAME = "manifest.json"
_MOST_BYTES = 16 << 20
"""Most bytes of a manifest, which has a few hundred per file."""
_NEEDED = {"command": list, "inputs": dict, "outputs": dict}
"""Fields, with their types, that every manifest has, even one of 0.2.0."""
# in order; the data preparation also escapes text from XML files, which new text does not need
STEPS = ("straight_apostrophe", "normalize", "tokenize", "aggressive", "lowercase")


def load(out: Path) -> dict[str, Any] | None:
    """Return the manifest of a finished folder, None if there is none.

    Raises:
        UserError: the file exists but is not a manifest.
    """
    path = out / NAME
    if not path.exists():
        return None
    try:
        found = read_json(read_bytes(path, _MOST_BYTES).decode())
        whole = all(isinstance(found.get(name), kind) for name, kind in _NEEDED.items())
        if whole and all(map(_is_described, found["inputs"].values())):
            return found
    except ValueError:
        pass
    raise UserError(f"{path} is not a manifest of these commands: name another folder")


def _is_described(file: Any) -> bool:
    return isinstance(file, dict) and isinstance(file.get("sha256"), str)


@dataclass(frozen=True)
class Recorded:
    """How the text of a data folder was made.

    Attributes:
        folder: the data folder.
        languages: source and target language of the folder.
        kind: kind of subwords, one of ``subwords.KINDS``.
        model: file of the subword model; None if there is none.
        raw_text: whether every Unicode space became a plain one.
        steps: the text steps of each language in the test set, else in ``valid`` or ``train``.
    """

    folder: Path
    languages: tuple[str, str]
    kind: str
    model: Path | None
    raw_text: bool
    steps: tuple[TextSteps, TextSteps]

    def steps_of(self, language: str) -> TextSteps:
        """Return the text steps of a language; a model may translate in either direction.

        Raises:
            UserError: it is neither of the two languages.
        """
        if language not in self.languages:
            raise UserError(
                f"{self.folder} has text of {' and '.join(self.languages)}, and the model reads or "
                f"writes {language}: name the data folder that it was trained on with --data"
            )
        return self.steps[self.languages.index(language)]


def read(folder: Path) -> Recorded | None:
    """Read how a folder of ``hyptrans prepare`` was made; return None without a manifest.

    Raises:
        UserError: the manifest is damaged or incomplete.
    """
    found = load(folder)
    if found is None:
        return None
    kinds = [kind for kind, name in subwords.MODEL_NAMES.items() if name in found["outputs"]]
    if ["--bpe", subwords.WORDS] in map(list, pairwise(found["command"])):
        kinds.append(subwords.WORDS)
    languages = found.get("languages")
    if not isinstance(languages, list) or [*map(type, languages)] != [str, str] or len(kinds) != 1:
        raise UserError(f"{folder / NAME} names no subword model or no languages")
    source, target = languages
    try:
        # steps that do not tokenize have other notes
        tokenized = [step for step in found["steps"] if step["name"].startswith("tokenize ")]
        noted = {step["name"]: step["steps"] for step in tokenized}
        steps = _steps(noted, source), _steps(noted, target)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{folder / NAME} does not say what was done to the text; make the folder again"
        ) from error
    name = subwords.MODEL_NAMES.get(kinds[0])
    model = folder / name if name else None
    raw_text = "--raw-text" in found["command"]
    return Recorded(folder, (source, target), kinds[0], model, raw_text, steps)


def _steps(noted: Mapping[str, Any], language: str) -> TextSteps:
    """Return the text steps of the first of ``test``, ``valid`` and ``train`` that has any."""
    names = (f"tokenize {name}.{language}" for name in ("test", "valid", "train"))
    flags = next((noted[name] for name in names if name in noted), "").split(", ")
    return TextSteps(language, **{flag: True for flag in STEPS if flag in flags})
