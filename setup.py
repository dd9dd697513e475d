"""Put the file ``hyptrans.pth`` beside the packages, where Python reads it at every start.

All else about the project stands in pyproject.toml.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PTH = "hyptrans.pth"


class BuildWithPth(build_py):
    """Copies the file into a wheel, an editable one too."""

    def run(self) -> None:
        super().run()
        # an editable install has no build folder: what lies in install_lib goes into its wheel
        editable = getattr(self, "editable_mode", False)
        folder = self.get_finalized_command("install").install_lib if editable else self.build_lib
        self.mkpath(folder)
        self.copy_file(str(Path(__file__).parent / PTH), str(Path(folder) / PTH))


setup(cmdclass={"build_py": BuildWithPth})
