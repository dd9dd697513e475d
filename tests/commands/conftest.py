"""The small models of the tests of inference."""

from tests.inference.conftest import make, make_of, prepared, texts  # noqa: F401
