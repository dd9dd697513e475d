"""Names of models are text in the table and in the report, whatever they are."""

import pytest

from hyptrans.support.svg import clean
from probing.report.results import escaped
from tests.hostile.stores import NAMES, shown


@pytest.mark.parametrize("name", NAMES)
def test_name_is_no_markup(name):
    shown(name)


@pytest.mark.parametrize("name", ["hybonet_tiny", "no 1 (seed 2)", "naïve", "עברית"])
def test_ordinary_name_stays_as_it_is(name):
    assert escaped(name) == clean(name) == name


def test_override_of_the_direction_is_shown():
    assert clean("a\u202eb\u2067c") == "a\ufffdb\ufffdc"
