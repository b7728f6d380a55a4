"""What pyproject.toml cannot say: the wheel carries the pipeline, from where the repository has it.

`stages/` becomes the package `wscpml.stages`; the files that `wscpml init` lays come beside it.
"""

import shutil
from pathlib import Path
from runpy import run_path

from setuptools import setup
from setuptools.command.build_py import build_py

LAID = run_path("wscpml/pipeline_files.py")


class BuildWithPipeline(build_py):
    """Copies the pipeline, too, unless the package is used where it is."""

    def run(self) -> None:
        """Build the package."""
        super().run()
        if self.editable_mode:
            return
        package = Path(self.build_lib, "wscpml")
        stages = {path: package / path for path in Path("stages").glob("*.py")}
        files = [path for pattern in LAID["FILES"] for path in Path().glob(pattern)]
        for path, target in (stages | {p: package / LAID["IN_WHEEL"] / p for p in files}).items():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


setup(cmdclass={"build_py": BuildWithPipeline})
