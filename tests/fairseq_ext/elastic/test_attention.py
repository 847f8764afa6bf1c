"""A transformer of fairseq's whose layers may become linear: fitted, searched by placement, extracted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.space import Architecture
from nas_core.supernet.host import open_supernet

GENES = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")


def linear(largest: Architecture) -> Architecture:
    return Architecture({**largest, **{gene: ("linear",) * 2 for gene in GENES}})


def elastic(checkpoint: Path, out: Path, *options: str) -> int:
    return main(["elastic", "--checkpoint", str(checkpoint), "--out", str(out), *options])


def test_layers_become_linear_and_their_placement_is_searched(
    transformer: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint, supernet, copies = transformer(), tmp_path / "supernet.pt", tmp_path / "copies.pt"
    kinds = ["--space", "attention", "--attention", "softmax,linear,local", "--calibrate", "6"]
    assert elastic(checkpoint, supernet, *kinds, "--fit", "15") == 0, capsys.readouterr().err
    output = capsys.readouterr().out
    assert "324 architectures" in output, "three kinds in four layers, two in two"
    assert "left out first" not in output, "no network of this space has fewer layers"
    for gene in GENES:
        assert f"{gene} of layer 2: linear differs from the trained attention by" in output
    assert elastic(checkpoint, copies, *kinds, "--fit", "0") == 0
    assert "differs from the trained attention" not in capsys.readouterr().out

    fitted, copied = open_supernet(supernet), open_supernet(copies)
    assert fitted.space == copied.space and set(fitted.space.largest()["decoder.cross_attention"]) == {"softmax"}
    largest = fitted.space.largest()
    assert fitted.evaluate(largest) == copied.evaluate(largest)
    original, other = fitted.evaluate(largest)["loss"], linear(largest)
    assert abs(fitted.evaluate(other)["loss"] - original) < abs(copied.evaluate(other)["loss"] - original)

    run = tmp_path / "run"
    search = [
        "search",
        "--checkpoint",
        str(supernet),
        "--out",
        str(run),
        "--strategy",
        "random",
        "--set",
        "evaluations=3",
    ]
    assert main([*search, "--placements"]) == 0, capsys.readouterr().err
    records = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    assert [each["search"] for each in records].count("given") == 6 and len(records) == 9
    finalist = next((run / "finalists").glob("*.json"))
    assert (
        main(["extract", "--checkpoint", str(supernet), "--arch", str(finalist), "--out", str(tmp_path / "n.pt")]) == 0
    )
