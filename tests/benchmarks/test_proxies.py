"""The benchmark of zero-cost proxies: its table, and published values where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts import published
from benchmarks.predictor import proxies
from nas_core.files.reading import read_json
from nas_core.proxies import PROXIES
from nas_core.proxies.networks import NasBench201Proxies

needs_values = pytest.mark.skipif(
    published.absent(published.ZERO_COST) is not None, reason=str(published.absent(published.ZERO_COST))
)


def record(cell: tuple[int, ...], draw: int, score: float) -> dict[str, Any]:
    scores = dict.fromkeys(PROXIES.names(), score)
    return {"cell": list(cell), "draw": draw, "images": "random", "scores": scores, "cpu_s": 0.5 + draw}


def test_the_table_compares_with_published_values_and_with_itself() -> None:
    cells = [(0, 0, 0, 0, 0, n) for n in range(4)]
    rows = [
        {"architecture": list(c), "val_accuracy": -n, **dict.fromkeys(PROXIES.names(), n)} for n, c in enumerate(cells)
    ]
    records = [record(cell, 0, n) for n, cell in enumerate(cells)]
    records += [record(cell, 1, score) for cell, score in zip(cells, (0, 1, 3, 2), strict=True)]
    records.append(record((1, 1, 1, 1, 1, 1), 0, 9.0))  # a cell that was not asked for
    (row, *_) = found = proxies.summary(records, rows)
    assert [each["proxy"] for each in found] == PROXIES.names()
    assert (row["cells"], row["draws"]) == (4, 2)
    assert row["tau_of_two_draws"] == pytest.approx(2 / 3, abs=1e-4) and row["tau"] == pytest.approx(5 / 6, abs=1e-4)
    assert row["published_tau_with_accuracy"] == -1 and row["tau_with_accuracy"] == pytest.approx(-5 / 6, abs=1e-4)
    one = proxies.summary([each for each in records if each["draw"] == 0], rows)[0]
    assert one["tau"] == one["tau_of_mean"] == 1 and one["tau_of_two_draws"] is None


def test_random_images_where_there_are_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "CIFAR10", Path("nowhere.npz"))
    assert proxies.images_of() == "random"
    images, labels = proxies.batch("random", 0)
    assert images.shape == (32, 3, 32, 32) and labels.shape == (32,)


def test_without_published_values_it_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(published, "ZERO_COST", Path("nowhere.gz"))
    assert proxies.main(["--cells", "2"]) == 0
    assert "skipped: nowhere.gz is absent; set NAS_EXT_DATA" in capsys.readouterr().out


@needs_values
def test_counts_and_synflow_are_those_that_were_published() -> None:
    rows = proxies.published_cells(4)
    scores = NasBench201Proxies(["params", "synflow"], batch=2)
    for row in rows:
        found = scores(row["architecture"])
        assert found["params"] == round(1e6 * row["params"])
        assert found["synflow"] == pytest.approx(row["synflow"], abs=0.6)


@needs_values
def test_results_say_what_they_were_computed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def score(task: proxies.Task) -> dict[str, Any]:
        return {
            **task.key,
            **{k: v for k, v in record(task.cell, task.draw, sum(task.cell)).items() if k in ("scores", "cpu_s")},
        }

    monkeypatch.setattr(proxies, "run", score)
    out, work = tmp_path / "r.json", tmp_path / "w.jsonl"
    arguments = ["--cells", "3", "--draws", "0", "--jobs", "0", "--work", str(work), "--out", str(out)]
    assert proxies.main(arguments) == 0
    found = read_json(out)
    assert (
        found["batch"] == 32
        and found["images"] in ("cifar10", "random")
        and len(found["rows"]) == 7
        and found["cpu_s_per_network"] == 0.5
    )
    assert found["measured"]["command"].startswith("python -m benchmarks proxies")
