import re

import pytest

from recipes.benchmark import serve

pytestmark = pytest.mark.slow


def test_concurrent_clients_get_their_own_answers(capsys):
    serve.main(["--clients", "4", "--requests", "20", "--rounds", "1"])
    shown = capsys.readouterr().out
    numbers = r"( \| \d+\.\d){2} \|$"
    assert re.search(rf"^\| `hyptrans serve`, 4 at a time{numbers}", shown, re.MULTILINE)
    assert "\nanswers 100, lost 0, wrong 0\n" in shown
    whole, status = re.search(r"SIGTERM: (\d+) whole answers, exit status (\d+)", shown).groups()
    assert int(whole) > 0
    assert status == "0"
