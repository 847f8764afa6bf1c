"""The quickstart of `examples/plugins`, offered by another distribution."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.plugins.quickstart import SUMS
from nas_core.cli import main
from tests.contracts.quickstart import QuickstartContract
from tests.toys import plug_in


class TestSums(QuickstartContract):
    quickstart = SUMS
    small = ("EVALUATIONS=5",)
    says = r"the smallest of 5 sums is \d+"
    makes = ("prices.json",)


def test_the_command_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plug_in(tmp_path / "site", monkeypatch, "nas_ext.hosts", "sums", "examples.plugins.quickstart:ADAPTER")
    assert main(["quickstart"]) == 0
    assert "  sums         find the smallest of many random sums" in capsys.readouterr().out
    assert main(["quickstart", "sums", str(tmp_path / "new")]) == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["README.md", "prices.json", "run.py"]
