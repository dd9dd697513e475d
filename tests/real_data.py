import os
from pathlib import Path

import pytest


def real_data() -> Path:
    """The folder that HYPTRANS_DATA names; without it the test is skipped."""
    folder = os.environ.get("HYPTRANS_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("HYPTRANS_DATA does not name the folder with the real data sets")
    return Path(folder)
