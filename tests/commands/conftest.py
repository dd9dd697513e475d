"""The small models of the tests of inference."""

from tests.inference.conftest import make, prepared, texts  # noqa: F401
