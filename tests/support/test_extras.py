import json

import pytest

from hyptrans.support.extras import require


def test_require_returns_the_module():
    assert require("json", "probing") is json


def test_require_names_the_command_that_installs_the_extra():
    wanted = r"^nosuch is missing: pip install 'hyptrans\[probing\]'"
    with pytest.raises(ModuleNotFoundError, match=wanted):
        require("nosuch.part", "probing")


def test_require_leaves_the_error_of_an_installed_module(tmp_path, monkeypatch):
    (tmp_path / "broken_of_the_test.py").write_text("import nosuch\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nosuch'"):
        require("broken_of_the_test", "data")
