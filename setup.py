"""Puts the start-up file of ``nas_core/startup.py`` beside the packages of a wheel; the rest is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

MODULE = "_nas_ext_start"


class WithStartUpFile(build_py):
    def run(self):
        super().run()
        # An editable wheel takes no files from the build folder.
        folder = self.get_finalized_command("install").install_lib if self.editable_mode else self.build_lib
        shutil.copy("nas_core/startup.py", Path(folder, f"{MODULE}.py"))
        Path(folder, "nas_ext.pth").write_text(f"import {MODULE}; {MODULE}.install()\n", encoding="utf-8")


setup(cmdclass={"build_py": WithStartUpFile})
