"""Which networks the demo's table shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.files import append_jsonl, write_json
from nas_core.space import Architecture, get_space

pytest.importorskip("sacrebleu", reason="needs sacrebleu: pip install 'nas-ext[fairseq]'")

from examples.demo.results import chosen

SPACE = get_space("hat_small")


def finalist(architecture: Architecture, measured_ms: float, **names: list[str]) -> dict[str, Any]:
    return {
        "key": architecture.key,
        "metrics": {"loss": 4.0, "latency_ms": 8.0},
        "measured": {"latency_ms": measured_ms},
        "genes": architecture.to_dict(),
        **names,
    }


def test_a_limit_that_nothing_keeps_is_named_so(tmp_path: Path) -> None:
    """The best measured within a limit; where all are above it, the fastest of them under another name."""
    rows = SPACE.architectures(SPACE.sample_rows(np.random.default_rng(0), 4))
    found = [
        finalist(rows[0], 10.9, over_limit=["latency_ms<=10", "latency_ms<=9"]),
        finalist(rows[1], 9.8, best_of=["latency_ms<=10"], over_limit=["latency_ms<=9"]),
        finalist(rows[2], 9.1, over_limit=["latency_ms<=9"]),
        finalist(rows[3], 12.0, best_of=["latency_ms<=20"]),
    ]
    write_json(tmp_path / "finalists.json", {"finalists": found})
    append_jsonl(tmp_path / "journal.jsonl", {"search": "x", "metrics": {"loss": 4.0}, "genes": rows[0].to_dict()})
    table = [(subnet.name, subnet.key) for subnet in chosen(tmp_path, [9.0, 10.0, 20.0], SPACE)[1:-1]]
    assert table == [
        ("≤ 9 ms, missed", rows[2].key),
        ("≤ 10 ms", rows[1].key),
        ("≤ 20 ms", rows[3].key),
    ]
