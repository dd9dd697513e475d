"""The model card of a folder, for the hub and for readers."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from hyptrans import __version__
from hyptrans.inference.contents import AVERAGED
from hyptrans.inference.describe import parameter_count
from hyptrans.support import tables
from hyptrans.support.errors import one_line


def make(name: str, about: Any, model: Any, *, folder: str, precision: str) -> str:
    """Return a card in the hub's format: values between two lines of dashes, then Markdown.

    Args:
        name: the model's name, for the title.
        about: has its architecture, languages and, as far as they are known, facts.
        model: the model itself, as a module.
        folder: the folder it is written to, from which it is loaded.
        precision: precision in which its parameters are stored.
    """
    name, facts = one_line(name), _cleaned(getattr(about, "facts", {}))
    source, target = about.languages
    spaces = model.encoder.state_spaces()
    curvatures = sorted({f"{space.c:.2g}" for space in spaces}, key=float)
    between = " to ".join(dict.fromkeys([curvatures[0], curvatures[-1]]))
    kind, loaded = spaces[0].kind, json.dumps(one_line(folder), ensure_ascii=False)
    states = "flat space" if kind == "euclidean" else f"{kind} space of curvature -c, c = {between}"
    blocks = [
        _front(name, about, facts),
        f"# {name}",
        f"Translates from `{source}` to `{target}`: `{about.architecture}` of hyptrans "
        f"{__version__}, {parameter_count(model):,} parameters in {precision} precision, states in "
        f"{states}.",
        f"```python\nimport hyptrans\n\nmodel = hyptrans.load({loaded})\n"
        'model.translate(["A sentence."])\n```',
        "In the library transformers, after `import hyptrans.transformers`: `AutoTokenizer`, "
        "`AutoModelForSeq2SeqLM` and `generate`; its version 5 has no `pipeline` for translation.",
        *_scores(facts),
        "## Training",
        *_training(facts),
    ]
    return "\n\n".join(blocks) + "\n"


def _front(name: str, about: Any, facts: Mapping[str, Any]) -> str:
    """Return the part that the hub reads: YAML, written as JSON, which is a subset."""
    front: dict[str, Any] = {
        "language": list(about.languages),
        "license": facts.get("license"),
        "library_name": "hyptrans",
        "pipeline_tag": "translation",
        "tags": ["fairseq", "hyperbolic", about.architecture],
    }
    if scores := facts.get("scores"):
        # not the fact "dataset", which names the training data
        data = str(facts.get("test") or "test set")
        metrics = [
            {"type": one["name"].lower(), "value": one["value"], "name": one["name"]}
            for one in scores
        ]
        result = {"task": {"type": "translation"}, "dataset": {"type": data, "name": data}}
        front["model-index"] = [{"name": name, "results": [{**result, "metrics": metrics}]}]
    known = {key: json.dumps(value, ensure_ascii=False) for key, value in front.items() if value}
    return "\n".join(["---", *(f"{key}: {value}" for key, value in known.items()), "---"])


def _cleaned(value: Any) -> Any:
    """Return a copy with every text on one line: a checkpoint's facts may hold any text."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, Mapping):
        return {one_line(key): _cleaned(part) for key, part in value.items()}
    return [_cleaned(part) for part in value] if isinstance(value, list) else value


def _block(*lines: str) -> str:
    """Return a code block, fenced by a mark that none of its lines contains."""
    mark = "```"
    while any(mark in line for line in lines):
        mark += "`"
    return "\n".join([mark, *lines, mark])


def _scores(facts: Mapping[str, Any]) -> list[str]:
    scores = facts.get("scores")
    if not scores:
        return []
    test = facts.get("test") or "test.source test.reference"
    source, reference = map(shlex.quote, shlex.split(test)[:2])
    rows = [(one["name"], f"{one['value']:.2f}", f"`{one['signature']}`") for one in scores]
    return [
        "## Scores",
        f"On `{test}`, translated with a beam of {facts.get('beam')}:",
        tables.markdown(("metric", "score", "signature"), rows, texts=3),
        _block(
            f"hyptrans translate FOLDER < {source} > output",
            f"sacrebleu {reference} -i output -m bleu chrf",
        ),
    ]


def _training(facts: Mapping[str, Any]) -> list[str]:
    averaged = ", ".join(f"{number:,}" for number in facts.get(AVERAGED) or ())
    items = {
        "Data": facts.get("dataset"),
        "License of the parameters": facts.get("license"),
        "Updates": f"{facts['updates']:,}" if facts.get("updates") else None,
        "Parameters": f"the average of those after {averaged} updates" if averaged else None,
    }
    known = [f"* {name}: {text}" for name, text in items.items() if text]
    blocks = ["\n".join(known)] if known else []
    if facts.get("command"):
        blocks.append(_block(facts["command"]))
    if facts.get("data"):
        files = (f"{digest}  {name}" for name, digest in facts["data"].items())
        blocks += ["SHA-256 of the text that went in:", _block(*files)]
    return blocks
