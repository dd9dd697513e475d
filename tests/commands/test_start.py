"""Imports of a command: few to translate, and none that is slow to report an error."""

import json

from tests.programs import python

SLOW = ["geoopt", "scipy.optimize", "sympy", "torch._dynamo", "fairseq", "transformers"]
LINES = [
    *(["nonsense"], ["prepare", "nonsense"], ["probe", "nonsense"], ["prepare", "text", "--oops"]),
    *(["translate"], ["export", "--oops"]),
    ["translate", "nope"],
    ["translate", "tatoeba-en-de", "--beam", "0"],
    ["translate", "tatoeba-en-de", "--n-best", "9"],
    ["translate", "tatoeba-en-de", "--lenpen", "99"],
    ["translate", "tatoeba-en-de", "--batch-tokens", "0"],
    ["info", "nope"],
    ["export", "nope.pt", "--out", "out"],
    ["average", "nope.pt", "nope2.pt", "--out", "out.pt"],
    ["score", "nope", "nope2"],
    *(["probe", "run", "--steps", "0"], ["probe", "geometry", "--oops"]),
    ["probe", "annotate", "--oops"],
]


def test_a_translation_imports_only_what_it_needs(tmp_path):
    code = (
        "import json, sys, hyptrans; model = hyptrans.load('tatoeba-en-de'); "
        "found = model.translate('Good night.'); "
        f"print(json.dumps([found, [name for name in {SLOW} if name in sys.modules]]))"
    )
    assert json.loads(python(code, cwd=tmp_path).stdout) == ["Gute Nacht!", []]


def test_command_line_errors_need_no_torch(tmp_path):
    code = (
        "import json, sys\nfrom hyptrans.commands.cli import main\nfound = []\n"
        f"for line in {LINES}:\n"
        "    try:\n        status = main(line)\n"
        "    except SystemExit as ended:\n        status = ended.code\n"
        "    found.append([status, *{'torch', 'fairseq'} & {*sys.modules}])\n"
        "print(json.dumps(found))"
    )
    assert json.loads(python(code, cwd=tmp_path).stdout) == [[2]] * len(LINES)
