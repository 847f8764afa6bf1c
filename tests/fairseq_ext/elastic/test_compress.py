"""``nas-ext compress`` of small models of fairseq's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.supernet import open_supernet
from tests.fairseq_ext.running import DECODING, FORMS, OWN, passed


@pytest.mark.parametrize(("kind", "form"), [("translation", "learned"), ("language", "pre-norm")])
def test_a_model_becomes_faster(
    kind: str,
    form: str,
    own_model: Callable[..., Path],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, out = request.getfixturevalue(OWN[kind][0]), tmp_path / "small.pt"
    command = ["compress", "--checkpoint", own_model(kind, form), "--data", data, "--limit", "latency_ms=80%"]
    command += [
        "--updates",
        100,
        "--batch-size",
        4,
        "--calibration-batches",
        4,
        "--valid-samples",
        20,
    ]
    assert main([*map(str, command), "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("trained network ") and " 1.00 " in line for line in lines) and "M param" in lines[-1]
    assert open_supernet(out, data=str(data)).space.cardinality() == 1
    if kind == "translation":
        assert len(passed("generate", data, "--path", out, *DECODING).hypotheses()) == 20


def test_masked_language_models_are_rejected(
    own_model: Callable[..., Path], request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = next(kind for kind in OWN if kind not in ("translation", "language"))
    checkpoint = own_model(kind, next(iter(FORMS[kind])))
    command = ["compress", "--checkpoint", checkpoint, "--data", request.getfixturevalue(OWN[kind][0])]
    assert main([*map(str, command), "--limit", "latency_ms=80%", "--out", str(tmp_path / "small.pt")]) == 2
    assert "nas-ext elastic" in capsys.readouterr().err
