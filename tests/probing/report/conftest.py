import pytest

from tests.probing.helpers import report as helper


@pytest.fixture(scope="session")
def report():
    return helper.report()
