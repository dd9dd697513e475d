"""Asserts of the shared tests say what was compared, as those of test files do."""

import pytest

pytest.register_assert_rewrite("tests.kernels.contract", "tests.kernels.cases")
