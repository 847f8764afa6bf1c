"""Trainings of images as curves: our own metrics, timm's summary, and a report that shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nas_core.cli import main
from tests.report.pages import ReadPage
from tests.timm_ext.running import train
from timm_ext.host import HOST
from timm_ext.training_log import training_curves


def test_timms_summary(tmp_path: Path) -> None:
    log = tmp_path / "summary.csv"
    log.write_text("epoch,train_loss,eval_loss,eval_top1,lr\n0,2.5,2.25,30.5,0.1\n1,1.5,,,0.1\n", encoding="utf-8")
    found = training_curves(log)
    assert found is not None and found.over == "epochs"
    assert found.panels == {
        "loss (nats)": {"training": ([1.0, 2.0], [2.5, 1.5]), "validation": ([1.0], [2.25])},
        "top-1 (%)": {"validation": ([1.0], [30.5])},
    }


@pytest.mark.parametrize("content", ["[]", "[1]", "{}", "{", '[{"epoch": 0}]'])
def test_other_files_are_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(content, encoding="utf-8")
    (tmp_path / "summary.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert training_curves(tmp_path / "metrics.json") is None
    assert training_curves(tmp_path / "summary.csv") is None


def test_a_table_that_csv_refuses_is_none(tmp_path: Path) -> None:
    long = "9" * 200_000  # more than csv takes in one field
    (tmp_path / "summary.csv").write_text(f"epoch,train_loss\n0,{long}\n", encoding="utf-8")
    assert training_curves(tmp_path / "summary.csv") is None


def test_a_search_is_reported_with_top1_units_and_training(
    npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if HOST.name not in _usable():
        pytest.skip("the project was installed before it had this entry point; run pip install -e . again")
    train(npz, tmp_path / "supernet")
    command = ["search", "--checkpoint", str(tmp_path / "supernet" / "best.pt"), "--out", str(tmp_path / "run")]
    few = ["--strategy", "random", "--set", "evaluations=6"]
    assert main([*command, *few, "--finalists", "3"]) == 0
    capsys.readouterr()
    assert main(["report", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out.splitlines()[0]
    assert "loss (nats)" in shown and "top-1 (%)" in shown
    page = ReadPage((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    assert "qkv_dim" not in page.text.rpartition("Finalists\n")[2].partition("Fixed by the search space")[0]
    panels = {f["layout"]["yaxis"]["title"]["text"]: f for f in page.figures}
    history = json.loads((tmp_path / "supernet" / "metrics.json").read_text())
    (top1,) = [trace for trace in panels["top-1 (%)"]["data"] if trace["name"] == "validation"]
    assert (top1["x"], top1["y"]) == ([1.0, 2.0], [record["top1"] for record in history])
    assert f"From {tmp_path / 'supernet' / 'metrics.json'}" in page.text


def _usable() -> list[str]:
    from nas_core.supernet.host import hosts

    return list(hosts())
