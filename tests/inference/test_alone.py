import json
import sys

import pytest
from fairseq.data import Dictionary as Theirs

from hyptrans.inference.dictionary import Dictionary
from hyptrans.support.errors import UserError
from tests.inference.conftest import ARCHS, export, load
from tests.programs import python, run

CODE = """
    import json
    import hyptrans
    from hyptrans.support.errors import UserError

    texts, *folders, checkpoint = json.loads(sys.argv[1])
    found = []
    for folder in folders:
        model = hyptrans.load(folder)
        best = [[(h.text, h.score) for h in row] for row in model.n_best(texts, 3, beam=3)]
        found.append([best, model.score(texts, texts), model.encode(texts)[0].states.tolist()])
    try:
        hyptrans.load(checkpoint)
    except UserError as error:
        found.append(str(error))
    print(json.dumps(found))
"""


def test_folders_of_all_architectures_translate_without_fairseq(make, texts, tmp_path):
    texts = texts[:3]
    folders = [export(make(arch), tmp_path / arch) for arch in ARCHS]
    asked = json.dumps([texts, *map(str, folders), str(make("hybonet"))])
    done = python(CODE, asked, without=["fairseq", "fairseq_cli", "hydra", "omegaconf"])
    *found, refused = json.loads(done.stdout)
    for folder, one in zip(folders, found, strict=True):
        model = load(folder)
        best = [[[h.text, h.score] for h in row] for row in model.n_best(texts, 3, beam=3)]
        states = model.encode(texts)[0].states.tolist()
        assert one == [best, model.score(texts, texts), states]
    wanted = "pip install 'hyptrans[fairseq]' && pip install --no-deps fairseq==0.12.2"
    assert refused == f"fairseq is missing: {wanted}"


@pytest.mark.parametrize("content", ["word\n", "a 1\na 2\n", "\xff 1\n", "", " 1\n"])
def test_error_names_a_damaged_dictionary(content, tmp_path):
    (tmp_path / "dict.en.txt").write_text(content, encoding="latin-1")
    with pytest.raises(UserError, match=r"dict\.en\.txt is not a dictionary of fairseq"):
        Dictionary.load(tmp_path / "dict.en.txt")


def test_dictionary_matches_fairseqs(tmp_path):
    path = tmp_path / "dict.en.txt"
    path.write_text("a 5\n\u2581b 3\nc d 1\n")
    ours, theirs = Dictionary.load(path), Theirs.load(str(path))
    for name in ("symbols", "count", "indices", "nspecial"):
        assert getattr(ours, name) == getattr(theirs, name)
    marks = [
        (d.pad(), d.eos(), d.unk(), d.bos(), d.index("a"), d.index("z")) for d in (ours, theirs)
    ]
    assert marks[0] == marks[1]
    assert ours[99] == theirs[99]


def test_geoopt_models_refuse_an_interpreter_without_docstrings():
    code = "import hyptrans; hyptrans.load('tatoeba-en-de')\nimport hyptrans.layers.manifold"
    done = run(sys.executable, "-OO", "-c", code, check=False)
    message = "python -OO leaves out docstrings, which geoopt edits: run python -O\n"
    assert done.stderr.endswith(f"UserError: {message}")
    assert "line 2, in <module>" in done.stderr
