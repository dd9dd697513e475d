"""The model card of a folder, for the hub and for readers."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hyptrans import __version__
from hyptrans.geometry.space import Space
from hyptrans.inference.contents import AVERAGED
from hyptrans.support import tables
from hyptrans.support.errors import one_line


def make(
    name: str,
    *,
    folder: str,
    architecture: str,
    languages: tuple[str, str],
    facts: Mapping[str, Any],
    spaces: Sequence[Space],
    parameters: int,
    precision: str,
) -> str:
    """Return a card in the hub's format: values between two lines of dashes, then Markdown.

    Args:
        name: the model's name, for the title.
        folder: the folder it is written to, from which it is loaded.
        architecture: its name, as in ``--arch``.
        languages: source and target.
        facts: ``license``, ``dataset``, ``data``, ``updates``, ``averaged_updates``, ``command``
            and ``scores``, as far as they are known.
        spaces: spaces of the encoder's states.
        parameters: number of parameters.
        precision: precision in which they are stored.
    """
    source, target = languages
    name, facts = one_line(name), _cleaned(facts)
    what = f"`{architecture}` of hyptrans {__version__}"
    curvatures = sorted({f"{space.c:.2g}" for space in spaces}, key=float)
    between = " to ".join(dict.fromkeys([curvatures[0], curvatures[-1]]))
    kind, loaded = spaces[0].kind, json.dumps(one_line(folder), ensure_ascii=False)
    states = "flat space" if kind == "euclidean" else f"{kind} space of curvature -c, c = {between}"
    blocks = [
        _front(name, architecture, languages, facts),
        f"# {name}",
        f"Translates from `{source}` to `{target}`: {what}, {parameters:,} parameters in "
        f"{precision} precision, states in {states}.",
        f"```python\nimport hyptrans\n\nmodel = hyptrans.load({loaded})\n"
        'model.translate(["A sentence."])\n```',
        "In the library transformers, after `import hyptrans.transformers`: `AutoTokenizer`, "
        "`AutoModelForSeq2SeqLM` and `generate`; its version 5 has no `pipeline` for translation.",
        _scores(facts),
        "## Training",
        _training(facts),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _front(
    name: str, architecture: str, languages: tuple[str, str], facts: Mapping[str, Any]
) -> str:
    """Return the part that the hub reads: YAML, written as JSON, which is a subset."""
    front: dict[str, Any] = {"language": list(languages)}
    if facts.get("license"):
        front["license"] = facts["license"]
    front |= {"library_name": "hyptrans", "pipeline_tag": "translation"}
    front["tags"] = ["fairseq", "hyperbolic", architecture]
    if scores := facts.get("scores"):
        # not the fact "dataset", which names the training data
        data = str(facts.get("test") or "test set")
        metrics = [
            {"type": one["name"].lower(), "value": one["value"], "name": one["name"]}
            for one in scores
        ]
        result = {"task": {"type": "translation"}, "dataset": {"type": data, "name": data}}
        front["model-index"] = [{"name": name, "results": [{**result, "metrics": metrics}]}]
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front.items())
    return "\n".join(["---", *lines, "---"])


def _cleaned(value: Any) -> Any:
    """Return a copy with every text on one line: a checkpoint's facts may hold any text."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, Mapping):
        return {one_line(key): _cleaned(part) for key, part in value.items()}
    return [_cleaned(part) for part in value] if isinstance(value, list) else value


def _block(*lines: str) -> list[str]:
    """Return a code block, fenced by a mark that none of its lines contains."""
    mark = "```"
    while any(mark in line for line in lines):
        mark += "`"
    return [mark, *lines, mark]


def _scores(facts: Mapping[str, Any]) -> str:
    if not facts.get("scores"):
        return ""
    test = facts.get("test") or "test.source test.reference"
    source, reference = map(shlex.quote, shlex.split(test)[:2])
    rows = [
        (one["name"], f"{one['value']:.2f}", f"`{one['signature']}`") for one in facts["scores"]
    ]
    lines = [
        *("## Scores", "", f"On `{test}`, translated with a beam of {facts.get('beam')}:", ""),
        *(tables.markdown(("metric", "score", "signature"), rows, texts=3), ""),
        *_block(
            f"hyptrans translate FOLDER < {source} > output",
            f"sacrebleu {reference} -i output -m bleu chrf",
        ),
    ]
    return "\n".join(lines)


def _training(facts: Mapping[str, Any]) -> str:
    updates = [f"{number:,}" for number in facts.get(AVERAGED) or ()]
    items = {
        "Data": facts.get("dataset"),
        "License of the parameters": facts.get("license"),
        "Updates": f"{facts['updates']:,}" if facts.get("updates") else None,
        "Parameters": f"the average of those after {', '.join(updates)} updates"
        if updates
        else None,
    }
    lines = [f"* {name}: {text}" for name, text in items.items() if text]
    if facts.get("command"):
        lines += ["", *_block(facts["command"])]
    if facts.get("data"):
        lines += ["", "SHA-256 of the text that went in:", ""]
        lines += _block(*(f"{digest}  {name}" for name, digest in facts["data"].items()))
    return "\n".join(lines)
