"""Read from a manifest how text became subwords, to treat new text alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from hyptrans.data import manifest, subwords
from hyptrans.data.moses import TextSteps
from hyptrans.support.errors import UserError

# in order; the data preparation also escapes text from XML files, which new text does not need
STEPS = ("straight_apostrophe", "normalize", "tokenize", "aggressive", "lowercase")


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
    """Read the manifest of a folder that ``hyptrans prepare`` wrote; return None if it has none.

    Raises:
        UserError: the manifest is damaged or incomplete.
    """
    found = manifest.load(folder)
    if found is None:
        return None
    place = folder / manifest.NAME
    kinds = [kind for kind, name in subwords.MODEL_NAMES.items() if name in found["outputs"]]
    if ["--bpe", subwords.WORDS] in map(list, pairwise(found["command"])):
        kinds.append(subwords.WORDS)
    languages = found.get("languages")
    if not isinstance(languages, list) or [*map(type, languages)] != [str, str] or len(kinds) != 1:
        raise UserError(f"{place} names no subword model or no languages")
    source, target = languages
    try:
        # steps that do not tokenize have other notes
        tokenized = [step for step in found["steps"] if step["name"].startswith("tokenize ")]
        noted = {step["name"]: step["steps"] for step in tokenized}
        steps = _steps(noted, source), _steps(noted, target)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{place} does not say what was done to the text; make the folder again"
        ) from error
    name = subwords.MODEL_NAMES.get(kinds[0])
    return Recorded(
        folder=folder,
        languages=(source, target),
        kind=kinds[0],
        model=folder / name if name else None,
        raw_text="--raw-text" in found["command"],
        steps=steps,
    )


def _steps(noted: Mapping[str, Any], language: str) -> TextSteps:
    """Return the text steps of the first of ``test``, ``valid`` and ``train`` that has any."""
    names = (f"tokenize {name}.{language}" for name in ("test", "valid", "train"))
    flags = next((noted[name] for name in names if name in noted), "").split(", ")
    return TextSteps(language, **{flag: True for flag in STEPS if flag in flags})
