"""Let asserts of the shared tests show the compared values, as in test files."""

import pytest

pytest.register_assert_rewrite("tests.kernels.contract", "tests.kernels.cases")
