"""What every quickstart has to be: files, a short page, a short script, and a result at small size."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nas_core.errors import ConfigError
from nas_core.quickstart import Quickstart
from tests.toys import ROOT
from tests.warm import warm

__all__ = ["QuickstartContract"]


class QuickstartContract:
    """A subclass says which quickstart, how its script runs at small size, and how its last line begins."""

    quickstart: Quickstart
    small: tuple[str, ...] = ()
    """``NAME=VALUE`` of environment variables; the page tells of them."""
    says: str
    """Pattern of the last line that the script prints."""
    makes: tuple[str, ...]
    """Files that are there afterwards."""

    def test_page_and_script_are_short(self, tmp_path: Path) -> None:
        written = self.quickstart.write(tmp_path / "new")
        assert {"README.md", self.quickstart.script} <= {path.name for path in written}
        page = (tmp_path / "new" / "README.md").read_text(encoding="utf-8")
        script = (tmp_path / "new" / self.quickstart.script).read_text(encoding="utf-8")
        assert len(page.splitlines()) <= 24 and len(script.splitlines()) <= 40
        assert max(map(len, [*page.splitlines(), *script.splitlines()])) <= 130
        assert f"`{self.quickstart.command}`" in page and self.quickstart.command in script
        assert all(one.split("=")[0] in page and one.split("=")[0] in script for one in self.small)
        assert not re.search(r"\b(examples|benchmarks|tests)[./]", script), "a reader has the packages alone"
        assert "\n" not in self.quickstart.purpose

    def test_a_folder_that_holds_something_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "README.md").write_text("mine")
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(ConfigError, match="is not empty; give another folder, or --force"):
            self.quickstart.write(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "notes.txt"]
        self.quickstart.write(tmp_path, force=True)
        assert (tmp_path / "README.md").read_text(encoding="utf-8") != "mine"
        assert (tmp_path / "notes.txt").read_text() == "mine"

    def test_started_in_another_folder_it_leaves_what_is_there(self, tmp_path: Path) -> None:
        if not self.quickstart.script.endswith(".sh"):
            pytest.skip("only shell scripts remove what an earlier run left")
        self.quickstart.write(tmp_path / "new folder")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine.txt").write_text("mine")
        (tmp_path / "programs").mkdir()
        for name, code in {"python": 1, "nas-ext": 0, "fairseq-preprocess": 1}.items():
            (tmp_path / "programs" / name).write_text(f"#!/bin/sh\nexit {code}\n")
            (tmp_path / "programs" / name).chmod(0o755)
        environment = {**os.environ, "PATH": f"{tmp_path / 'programs'}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", f"new folder/{self.quickstart.script}"], cwd=tmp_path, env=environment, capture_output=True,
            check=False,
        )  # fmt: skip
        assert done.returncode != 0 and (tmp_path / "out" / "mine.txt").exists()

    @pytest.mark.slow
    def test_it_runs_and_says_what_came_out(self, tmp_path: Path) -> None:
        self.quickstart.write(tmp_path / "new folder")
        program, script = self.quickstart.command.split()
        environment = warm(
            {
                **os.environ,
                **dict(one.split("=") for one in self.small),
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
            }
        )
        done = subprocess.run(
            [program, script], cwd=tmp_path / "new folder", env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.match(self.says, done.stdout.splitlines()[-1]), done.stdout
        assert [name for name in self.makes if not (tmp_path / "new folder" / name).exists()] == []
