"""Reports of a search, from a run folder made up here."""

import csv
import io
import json

import pytest
import yaml

from nas_core.cli import main
from nas_core.report import Page, write_report
from nas_core.report.comparison import comparison_table
from nas_core.report.figures import heat_map, pairs, progress
from nas_core.report.page import Field, Points, Row
from nas_core.report.run import limit_label, read_run
from nas_core.report.tables import Column, Table, describe
from nas_core.space import Architecture

GENES = {"encoder.layers": 2, "encoder.ffn_dim": [256, 512], "decoder.layers": 1, "decoder.ffn_dim": [256]}


def evaluation(index, search, latency, loss):
    metrics = {"latency_ms": latency, "loss": loss, "params_m": 0.5 + index / 10}
    return {"index": index, "search": search, "key": f"arch{index:06}", "metrics": metrics, "genes": GENES}


@pytest.fixture
def run(tmp_path):
    rows = [
        evaluation(0, "latency_ms<=8", 7.5, 5.0),
        evaluation(1, "latency_ms<=8", 6.0, 5.4),
        evaluation(2, "latency_ms<=8", 7.9, None),
        evaluation(3, "latency_ms<=12", 11.0, 4.2),
    ]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    best = [
        {**rows[3], "best_of": ["latency_ms<=12"], "file": "a.json", "measured": {"latency_ms": 11.5}},
        {**rows[0], "best_of": ["latency_ms<=8"], "file": "b.json", "measured": {}},
    ]
    content = {"format": "nas-ext/finalists", "version": 1, "finalists": best}
    (tmp_path / "finalists.json").write_text(json.dumps(content))
    searches = {
        name: {"metric": "loss", "constraints": {"latency_ms": limit}}
        for name, limit in [("latency_ms<=8", 8.0), ("latency_ms<=12", 12.0)]
    }
    settings = {
        "checkpoint": "<b>&best.pt",
        "objectives": ["loss", "latency_ms"],
        "searches": searches,
        "space": {"name": "s<1>"},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"format": "nas-ext/search", "settings": settings}))
    return tmp_path


def test_page_and_csv(run):
    page = write_report(run).read_text(encoding="utf-8")
    for text in ["≤ 8 ms", "≤ 12 ms", "arch000003", "4.2000", "11.50", "-4.3", "4 (1 failed)", "ffn_dim 256/512"]:
        assert text in page
    assert "&lt;b&gt;&amp;best.pt" in page and "s&lt;1&gt;" in page
    assert "<b>&best" not in page
    rows = list(csv.DictReader(io.StringIO((run / "finalists.csv").read_text(encoding="utf-8"))))
    assert [row["architecture"] for row in rows] == ["arch000000", "arch000003"]
    assert rows[1]["measured_ms"] == "11.5" and rows[0]["measured_ms"] == ""


def test_every_evaluation_is_a_line(run):
    journal = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    journal[2]["error"] = "loss is nan"
    (run / "journal.jsonl").write_text("".join(json.dumps(row) + "\n" for row in journal))
    write_report(run)
    lines = [json.loads(line) for line in (run / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = list(csv.DictReader(io.StringIO((run / "evaluations.csv").read_text(encoding="utf-8"))))
    assert len(lines) == len(rows) == 4
    first = ["index", "search", "key", "error", "loss", "latency_ms", "params_m"]
    assert list(lines[0]) == list(rows[0]) == [*first, *sorted(GENES)]
    assert lines[3] == {
        "index": 3, "search": "latency_ms<=12", "key": "arch000003", "error": None,
        "loss": 4.2, "latency_ms": 11.0, "params_m": 0.8, **GENES,
    }  # fmt: skip
    assert lines[2]["loss"] is None and rows[2]["loss"] == "" and rows[2]["error"] == "loss is nan"
    assert rows[0]["encoder.ffn_dim"] == "256 512" and rows[0]["encoder.layers"] == "2"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("journal.jsonl", ""),
        ("journal.jsonl", '{"search": "a", "metrics": {"loss": "low"}}\n'),
        ("finalists.json", '{"finalists": [3]}'),
        ("config.yaml", "a: ["),
        (None, None),
    ],
)
def test_bad_folders_are_one_line(run, file, content, capsys):
    folder = run / "absent" if file is None else run
    if file:
        (run / file).write_text(content)
    assert main(["report", str(folder)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and str(folder) in error


def test_table():
    columns = [Column("name", "name"), Column("ms", "latency (ms)", ".1f")]
    table = Table(columns, [{"name": "a", "ms": 1.25}, {"name": "long, name", "ms": float("nan")}, {"name": "c"}])
    assert table.text().splitlines() == [
        "name        latency (ms)",
        "----------  ------------",
        "a                    1.2",
        "long, name             -",
        "c                      -",
    ]
    assert table.csv() == 'name,ms\na,1.25\n"long, name",nan\nc,\n'


def test_page_escapes_everything():
    page = Page("<t>", "a & b")
    evil = "<script>alert(1)</script>"
    page.heading(evil)
    page.paragraph(evil)
    page.facts({evil: evil})
    page.table(Table([Column("x", evil)], [{"x": evil}]))
    page.plot(heat_map([evil], [[1.0]], 1.0, evil), evil)
    page.plot(pairs({evil: ([1.0], [2.0])}, evil, evil), evil)
    page.plot(progress({evil: [1.0]}, evil), evil, evil)
    page.points(Points([Field(evil)], [Row(evil, [evil])], evil), heading=evil)
    text = page.render()
    assert evil not in text and "<title>&lt;t&gt;</title>" in text


def test_words_for_people():
    assert limit_label("latency_ms<=8.25") == "≤ 8.25 ms"
    assert limit_label("params_m<=2") == "≤ 2 M parameters"
    assert limit_label("latency_ms<=8 params_m<=2") == "≤ 8 ms, ≤ 2 M parameters"
    assert limit_label("unlimited") == "without a limit"
    text = describe(Architecture({**GENES, "qkv_dim": 128}))
    assert text == "encoder: ffn_dim 256/512, layers 2; decoder: ffn_dim 256, layers 1; qkv_dim 128"
    assert describe(Architecture({"a": [8, 8, 8, 4, 4]})) == "a 8x3/4/4"


@pytest.mark.parametrize("cost", [float("nan"), float("inf")])
def test_costs_that_are_no_numbers_stand_in_no_front(run, cost):
    """The best loss at an unknown cost would end the front before all others, and with it a volume of two runs."""
    before, volume = read_run(run).points("latency_ms"), comparison_table([read_run(run)]).rows[0]["volume"]
    with open(run / "journal.jsonl", "a", encoding="utf-8") as journal:
        journal.write(json.dumps(evaluation(4, "latency_ms<=12", cost, 1.0)) + "\n")
    assert len(read_run(run).evaluations) == 5 and read_run(run).points("latency_ms") == before
    assert comparison_table([read_run(run)]).rows[0]["volume"] == volume
