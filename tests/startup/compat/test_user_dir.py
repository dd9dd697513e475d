"""``--user-dir`` with the name of the package, from every place it can be at."""

import importlib
import logging
import sys
from argparse import Namespace

import pytest
from fairseq import utils

from hyptrans_startup import plugin
from hyptrans_startup.errors import UserError

NAME = "plugin_of_the_test"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Write the package into a folder, whose name is kept where the package registers models."""
    monkeypatch.setattr(plugin, "PACKAGE", NAME)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(utils.import_user_module, "memo", set(), raising=False)

    def place(folder):
        doors = tmp_path / folder / NAME / "fairseq"
        doors.mkdir(parents=True)
        (doors.parent / "__init__.py").touch()
        (doors / "__init__.py").write_text(f"PLACE = '{folder}'\n")
        return tmp_path / folder

    yield place
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]
    importlib.invalidate_caches()


def imported_from(argument=NAME):
    importlib.invalidate_caches()
    utils.import_user_module(Namespace(user_dir=argument))
    return sys.modules[f"{NAME}.fairseq"].PLACE


def test_folder_here_is_taken(place, monkeypatch):
    monkeypatch.chdir(place("here"))
    assert imported_from() == "here"


def test_path_is_taken(place):
    assert imported_from(str(place("here") / NAME)) == "here"


def test_installed_package_is_taken_from_another_folder(place, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(place("site"))
    monkeypatch.chdir(tmp_path)
    assert imported_from() == "site"


def test_package_that_is_imported_already_is_registered(place, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(place("site"))
    monkeypatch.chdir(tmp_path)
    importlib.import_module(NAME)
    assert f"{NAME}.fairseq" not in sys.modules
    assert imported_from() == "site"


@pytest.mark.parametrize(
    "argument", [NAME, f"{NAME}/", f"./{NAME}", f"{{here}}/{NAME}", "link", ".", "{here}"]
)
def test_installed_package_goes_before_the_folder_here(argument, place, monkeypatch, caplog):
    monkeypatch.syspath_prepend(place("site"))
    here = place("here")
    (here / "link").symlink_to(NAME)
    monkeypatch.chdir(here)
    with caplog.at_level(logging.WARNING):
        assert imported_from(argument.format(here=here)) == "site"
    assert f"site/{NAME} and leaves out" in caplog.text
    assert f"here/{NAME}" in caplog.text


@pytest.mark.parametrize("argument", ["here", "link", f"here/{NAME}"])
def test_folder_that_is_named_counts_where_none_is_installed(
    argument, place, monkeypatch, tmp_path
):
    here = place("here")
    (tmp_path / "link").symlink_to(here / NAME)
    monkeypatch.chdir(tmp_path)
    assert imported_from(argument) == "here"


def test_imported_package_goes_before_the_folder_here_and_says_so(place, monkeypatch, caplog):
    monkeypatch.syspath_prepend(place("site"))
    importlib.import_module(NAME)
    monkeypatch.chdir(place("here"))
    with caplog.at_level(logging.WARNING):
        assert imported_from() == "site"
    assert f"site/{NAME} and leaves out" in caplog.text


def test_one_package_at_one_place_needs_no_warning(place, monkeypatch, caplog):
    here = place("here")
    monkeypatch.syspath_prepend(here)
    monkeypatch.chdir(here)
    assert imported_from() == "here"
    assert caplog.text == ""


def test_folder_that_is_no_package_is_passed_over(place, monkeypatch, tmp_path, caplog):
    monkeypatch.syspath_prepend(place("site"))
    (tmp_path / "clone" / NAME).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "clone")
    assert imported_from() == "site"
    assert caplog.text == ""


@pytest.mark.parametrize("argument", [NAME, "no/such/folder"])
def test_missing_folder_is_named(argument, place, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=f"--user-dir {argument} does not exist"):
        utils.import_user_module(Namespace(user_dir=argument))


def test_no_user_dir_is_no_error():
    utils.import_user_module(Namespace(user_dir=None))
