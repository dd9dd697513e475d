"""The load test's command: no answer is lost or mixed up, and memory stays level."""

import re

import pytest

from recipes.benchmark import serve

pytestmark = pytest.mark.slow


def test_concurrent_clients_get_their_own_answers(capsys):
    serve.main(["--clients", "4", "--requests", "20", "--rounds", "1"])
    shown = capsys.readouterr().out
    numbers = r"( \| \d+\.\d){3} \|$"
    assert re.search(rf"^\| `hyptrans serve`, 4 at a time{numbers}", shown, re.MULTILINE)
    assert "\nanswers 100, lost 0, not the translator's 0, another's 0\n" in shown
    assert "5,000 words: (413, " in shown
    whole, status = re.search(r"SIGTERM: (\d+) whole answers, exit status (\d+)", shown).groups()
    assert int(whole) > 0
    assert status == "0"
