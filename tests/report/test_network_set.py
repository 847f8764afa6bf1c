"""The table at the end of a measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nas_core.latency.by_graph.dataset.folder import NetworkSet
from nas_core.report.network_set import summary


def row(family: str, **more: Any) -> dict[str, Any]:
    return {"name": family, "family": family, "settings": {}, **more}


def test_families_with_their_milliseconds() -> None:
    rows = [row("vgg", measured={"torch": {"corrected_ms": ms}}, seconds=2.0) for ms in (3.0, 1.0, 20.0)]
    rows += [row("vgg", error="no"), row("vit", error="no")]
    lines = summary(NetworkSet(Path("set"), {}, {}, {"torch": 1.0}, rows)).splitlines()
    assert lines[0].split() == ["family", "networks", "skipped", "torch", "min", "ms", "median", "ms", "max", "ms"]
    assert [line.split() for line in lines[2:5]] == [
        ["vgg", "3", "1", "1.00", "3.00", "20.00"],
        ["vit", "0", "1", "-", "-", "-"],
        ["all", "3", "2", "1.00", "3.00", "20.00"],
    ]
    assert lines[5] == "1800 networks per hour"
