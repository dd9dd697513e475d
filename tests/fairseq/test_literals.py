import pytest
from fairseq import utils
from fairseq.models import fconv
from fairseq.optim import adam

import hyptrans.fairseq  # noqa: F401 - takes the place of eval
from hyptrans.fairseq.literals import literal
from hyptrans.support.errors import UserError

TAKEN = ["(0.9, 0.98)", "[(512, 3)] * 9 + [(1024, 3)] * 4", "True", " {'a': -1} ", "2 * 3 - 1 / 4"]
TAKEN += ["'text'", "[]", "1e-8", "None"]
REFUSED = ["__import__('os').system('true')", "open('/etc/passwd')", "len('a')", "[x for x in '']"]
REFUSED += ["9 ** 9", "(lambda: 1)()", "'a'.upper()", "f'{1}'", "1 +", "print", "[1] + 1", "1 / 0"]


@pytest.mark.parametrize("text", TAKEN)
def test_literals_evaluate_as_eval_does(text):
    assert literal(text) == eval(text)


@pytest.mark.parametrize("text", REFUSED)
def test_expressions_beyond_literals_are_refused(text):
    with pytest.raises(UserError, match="is refused: fairseq would evaluate it"):
        literal(text)


@pytest.mark.parametrize("module", [utils, fconv, adam])
def test_fairseq_modules_evaluate_only_literals(module):
    assert module.eval is literal


def test_fairseq_reads_numbers_as_before():
    assert utils.eval_str_list("[1, 2]") == [1.0, 2.0]
    assert utils.eval_str_list("3") == [3.0]
    assert utils.eval_bool(True, default=True) is True
    with pytest.raises(UserError, match="is refused"):
        utils.eval_bool("__import__('os')")
