import builtins
import json

import pytest

from hyptrans.data import manifest
from hyptrans.data.moses import TextSteps
from hyptrans.support.errors import UserError

MANIFEST = {
    "command": ["hyptrans prepare text"],
    "languages": ["en", "de"],
    "inputs": {},
    "outputs": {"bpe.codes": {}},
    "steps": [
        {"name": "read test", "pairs": 3},
        {"name": "tokenize train.en", "steps": "normalize"},
        {"name": "tokenize test.en", "steps": "tokenize, lowercase"},
    ],
}


def test_manifest_records_the_steps_of_the_test_set(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    found = manifest.read(tmp_path)
    assert found.kind == "subword-nmt"
    assert found.steps == (TextSteps("en", tokenize=True, lowercase=True), TextSteps("de"))
    assert [found.steps_of(language) for language in ("de", "en")] == [*reversed(found.steps)]
    with pytest.raises(UserError, match="has text of en and de, and the model reads or writes fr"):
        found.steps_of("fr")
    assert manifest.read(tmp_path / "none") is None


def changed(**fields):
    return json.dumps({**MANIFEST, **fields})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (json.dumps({k: v for k, v in MANIFEST.items() if k != "steps"}), "does not say what was"),
        (changed(steps=["x"]), "does not say what was done"),
        (changed(steps=[{"name": "tokenize test.en", "steps": 1}]), "does not say what was done"),
        (changed(languages=[["en"], "de"]), "names no subword model or no languages"),
        (changed(outputs={}), "names no subword model or no languages"),
        (changed(command=3), "is not a manifest"),
        (changed(inputs={"train.en": {"bytes": 3}}), "is not a manifest"),
        ("[" * 100_000, "is not a manifest"),
        ("[]", "is not a manifest"),
        ("\udcff", "is not a manifest"),
    ],
    ids=range(10),
)
def test_an_incomplete_manifest_gives_a_one_sentence_error(tmp_path, text, problem):
    (tmp_path / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError, match=rf"manifest\.json {problem}"):
        manifest.read(tmp_path)


def test_an_endless_manifest_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(MANIFEST) + " " * 100)
    monkeypatch.setattr(manifest, "_MOST_BYTES", len(json.dumps(MANIFEST)) + 99)
    with pytest.raises(UserError, match=r"manifest\.json is not a manifest of these commands"):
        manifest.read(tmp_path)
    path.unlink()
    path.symlink_to("/dev/zero")
    # what reads it to its end takes all memory, so nothing but its size may be asked of it
    monkeypatch.setattr(builtins, "open", None)
    with pytest.raises(UserError, match=r"manifest\.json is not a manifest of these commands"):
        manifest.read(tmp_path)
