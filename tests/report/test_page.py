"""The page of a search: one file, every architecture behind its point, and what a reader asks first."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.report import read_run, write_report
from nas_core.report.page import interactive
from nas_core.report.search.facts import duration
from nas_core.report.search.genes import told_apart
from nas_core.report.search.parallel import axes_of
from nas_core.search import Constraint, RandomConfig, RandomSearch, search
from nas_core.space import Architecture, get_space
from tests.report.pages import ReadPage

SPACE = get_space("hat_small")
NAMES = [choice.name for choice in SPACE.choices]
Run = Callable[..., Path]


def depth(rows: Any) -> Any:
    features = SPACE.encode(SPACE.architectures(rows)).astype(float)
    return 1.0 + 5 * features[:, NAMES.index("decoder.layers")] + 3 * features[:, NAMES.index("encoder.ffn_dim")]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run(name, notes=.., ..)``: the folder of a random search under two limits, with a metric that is maximised
    if its name begins with ``-``."""

    def make(name: str = "run", metric: str = "loss", seed: int = 0, evaluations: int = 20, **settings: Any) -> Path:
        def evaluate(architecture: Architecture) -> dict[str, float]:
            size = float(SPACE.encode([architecture]).sum())
            top1 = 100 / (5 - size / 10)
            return {metric: -top1 if metric == "-top1" else 5 - size / 10, "top1": top1, "params_m": size}

        config = RandomConfig(evaluations=evaluations)
        limits = {limit: Constraint("latency_ms", limit, depth) for limit in (6, 10)}
        strategies = {
            f"latency_ms<={limit}": RandomSearch(SPACE, [constraint], config, seed=seed, metric=metric)
            for limit, constraint in limits.items()
        }
        search(strategies, evaluate, tmp_path / name, finalists=4, progress=False, **settings)
        return tmp_path / name

    return make


def test_the_page_is_one_file_with_every_architecture_behind_its_point(run: Run) -> None:
    folder = run(notes={"units": {"loss": "bits per token"}})
    page = ReadPage(write_report(folder).read_text(encoding="utf-8"))
    assert all(address.startswith(("data:", "#")) for address in page.loaded), "something outside the file is loaded"
    assert "default-src 'none'" in page.policy and "form-action 'none'" in page.policy and "http" not in page.policy
    assert "showSendToCloud: false" in page.scripts[-1]  # plotly has a button that sends figures to its server
    assert sum("Plotly" in script and len(script) > 1_000_000 for script in page.scripts) == 1  # plotly.js, once

    journal = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    points = page.data["points"]
    assert [row["genes"] for row in points["rows"]] == [entry["genes"] for entry in journal]
    titles, units = ([field[part] for field in points["fields"]] for part in ("title", "unit"))
    assert titles == ["loss", "predicted latency", "top-1", "parameters", "search", "best"]
    assert units == ["bits per token", "ms", "%", "M", "", ""]
    assert points["rows"][3]["values"][:2] == [journal[3]["metrics"]["loss"], journal[3]["metrics"]["latency_ms"]]
    assert set(points["shown"]) == set(NAMES) - {"encoder.layers"}  # it has one option

    front = page.traces(0)
    shown = [n for name, trace in front.items() if re.match(r"≤ \d+ ms", name) for n in trace["customdata"]]
    assert sorted(shown) == list(range(len(journal)))
    for trace in front.values():
        for x, y, number in zip(trace["x"], trace["y"], trace["customdata"], strict=True):
            assert (x, y) == (journal[number]["metrics"]["latency_ms"], journal[number]["metrics"]["loss"])
    assert page.figures[0]["layout"]["yaxis"]["title"]["text"] == "loss (bits per token)"
    assert page.figures[0]["layout"]["xaxis"]["title"]["text"] == "predicted latency (ms)"
    finalists = read_run(folder).finalists
    named = {text for name, trace in front.items() if name.startswith("finalists") for text in trace["text"] if text}
    assert named == {", ".join(f"≤ {limit[12:]} ms" for limit in f["best_of"]) for f in finalists if f["best_of"]}


def test_facts_come_before_fingerprints(run: Run) -> None:
    folder = run(
        settings={"checkpoint_sha256": "ab" * 32, "data": "/corpora/x", "valid_sentences": 60},
        notes={"checkpoint": "/models/supernet.pt", "device": "cpu", "latency_model": None},
    )
    text = write_report(folder).read_text(encoding="utf-8")
    facts, _, details = text.partition("<details><summary>Fingerprints")
    for name, value in {
        "run folder": str(folder), "checkpoint": "/models/supernet.pt", "data": "/corpora/x", "of it, evaluated": "60",
        "objective": "minimise loss",
    }.items():  # fmt: skip
        assert f"<dt>{name}</dt><dd>{value}</dd>" in facts
    assert re.search(r"<dt>started</dt><dd>20\d\d-\d\d-\d\d \d\d:\d\d UTC</dd>", facts)
    assert re.search(r"<dt>duration</dt><dd>\d+ s</dd>", facts)
    assert re.search(r"<dt>machine</dt><dd>.*\d+ cores</dd>", facts)
    assert "ab" * 32 not in facts and f"<dt>checkpoint (SHA-256)</dt><dd>{'ab' * 32}</dd>" in details
    assert ">None<" not in text and "latency model" not in facts


@pytest.mark.parametrize(
    ("settings", "notes", "source", "extracted"),
    [
        ({}, {}, "with the value that the evaluation function of the search returned", False),
        ({}, {"engine": "NNI"}, "with the result of its NNI trial", False),
        ({"checkpoint_sha256": "ab"}, {}, "evaluated with inherited weights of the supernet", True),
        (
            {"checkpoint_sha256": "ab", "calibration_sha256": "cd"},
            {"checkpoint": "/models/supernet.pt"},
            "with the value that a calibration estimates from inherited weights of the supernet",
            True,
        ),
    ],
)
def test_values_are_called_what_they_are(
    run: Run, settings: dict[str, Any], notes: dict[str, Any], source: str, extracted: bool
) -> None:
    page = ReadPage(write_report(run(evaluations=3, settings=settings, notes=notes)).read_text(encoding="utf-8"))
    assert f"Each dot is an architecture {source}: " in page.text
    assert ("inherited weights" in page.text) == extracted
    assert ("extract" in page.data["points"]["file"]["summary"]) == extracted


@pytest.mark.parametrize(
    ("seconds", "shown"), [([3.4], "3 s"), ([100, 25], "2 min 5 s in 2 runs"), ([7300.0], "2 h 1 min"), ([], "")]
)
def test_durations(run: Run, seconds: list[float], shown: str) -> None:
    found = read_run(run(evaluations=1))
    found.sessions[:] = [{"started": "", "seconds": s, "machine": {}} for s in seconds]
    assert duration(found) == shown


def test_finalists_of_images_have_their_top1_and_fixed_genes_stand_once(run: Run) -> None:
    folder = run()
    page = ReadPage(write_report(folder).read_text(encoding="utf-8"))
    head, _, rest = page.text.rpartition("Finalists\n")
    assert "top-1 (%)" in rest and "off by" not in rest
    assert rest.count("qkv_dim") == 1 and rest.count("encoder: layers 3") == 1  # no choice of this space
    assert "top-1 (%)" not in head.partition("Pareto front")[0]


def test_genes_that_differ() -> None:
    searched = ["a.x", "a.y", "z"]
    genes = {"one": {"a.x": 1, "a.y": [1, 2], "z": 3, "fixed": 5}, "two": {"a.x": 1, "a.y": [1], "z": 4, "fixed": 5}}
    assert told_apart(genes, searched) == {
        "all of them": "a: x 1", "one": "a: y 1/2; z 3", "two": "a: y 1; z 4",
    }  # fmt: skip
    assert told_apart({"one": genes["one"]}, searched) == {"one": "a: x 1, y 1/2; z 3"}
    assert told_apart({"one": {"z": 1}, "two": {"z": 1}}, searched)["two"] == "nothing else"


def test_what_is_maximised_is_shown_as_it_is(run: Run) -> None:
    """A search for the largest top-1 minimises its negative; nobody wants to read that."""
    folder = run(metric="-top1")
    found = read_run(folder)
    assert (found.metric, found.maximised, found.others) == ("top1", True, ["params_m"])
    page = ReadPage(write_report(folder).read_text(encoding="utf-8"))
    front = next(trace for name, trace in page.traces(0).items() if name.startswith("Pareto front"))
    assert front["y"] == sorted(front["y"]) and len(front["y"]) > 1 and min(front["y"]) > 0
    assert "-top1" not in page.text and "maximise top-1 (%)" in page.text
    best = [value for value in page.figures[-1]["data"][0]["y"] if value is not None]
    assert best == sorted(best)
    assert (folder / "evaluations.csv").read_text().splitlines()[0].startswith("index,search,key,error,top1,latency_ms")


def test_parallel_coordinates(run: Run) -> None:
    folder = run()
    axes = {axis["label"]: axis for axis in axes_of(read_run(folder))}
    journal = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert list(axes)[:4] == ["loss", "predicted latency (ms)", "top-1 (%)", "parameters (M)"] and len(axes) <= 14
    assert axes["decoder.layers"]["values"] == [entry["genes"]["decoder.layers"] for entry in journal]
    assert axes["decoder.layers"]["ticks"] == {1: "1", 2: "2", 3: "3"}
    assert axes["encoder.ffn_dim, mean"]["values"] == [np.mean(entry["genes"]["encoder.ffn_dim"]) for entry in journal]
    assert not [label for label in axes if "qkv_dim" in label or label.startswith("encoder.layers")]
    page = ReadPage(write_report(folder).read_text(encoding="utf-8"))
    (lines,) = [trace for figure in page.figures for trace in figure["data"] if trace["type"] == "parcoords"]
    assert [one["label"] for one in lines["dimensions"]] == list(axes)
    assert all(len(one["values"]) == len(journal) for one in lines["dimensions"])


def test_genes_that_are_names_have_their_words_as_ticks(tmp_path: Path) -> None:
    from nas_core.report.search.parallel import gene_axis

    assert gene_axis("kind", ["b", "a", "b"]) == {"label": "kind", "values": [1, 0, 1], "ticks": {0: "a", 1: "b"}}
    assert gene_axis("kinds", [["a", "b"], ["b"]]) == {"label": "kinds, share of b", "values": [0.5, 1.0]}
    assert gene_axis("layers", [[1], []]) is None


def test_text_of_a_run_cannot_become_script(run: Run) -> None:
    evil = "</script><script>alert(1)</script><b>"
    folder = run(evaluations=3, notes={"checkpoint": evil, "units": {"loss": evil}})
    lines = (folder / "journal.jsonl").read_text().splitlines()
    entry = json.loads(lines[0])
    entry["key"] = evil
    (folder / "journal.jsonl").write_text("\n".join([json.dumps(entry), *lines[1:]]) + "\n")
    text = write_report(folder).read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert ReadPage(text).data["points"]["rows"][0]["key"] == evil


def test_axes_of_whole_numbers_have_whole_ticks() -> None:
    assert interactive.progress({"a": [3.0, float("nan"), 2.0]}, "loss")["layout"]["xaxis"]["dtick"] == 1
    assert "dtick" not in interactive.progress({"a": [1.0] * 400}, "loss")["layout"]["xaxis"]
    assert interactive.progress({"a": [3.0, float("nan"), 2.0]}, "y")["data"][0]["y"] == [3.0, 3.0, 2.0]
    assert interactive.progress({"a": [3.0, 4.0, 2.0]}, "y", maximised=True)["data"][0]["y"] == [3.0, 4.0, 4.0]


def test_runs_side_by_side(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [run("first"), run("second", seed=5)]
    assert main(["report", *map(str, folders)]) == 0
    shown = capsys.readouterr().out
    page = ReadPage((folders[0] / "comparison.html").read_text(encoding="utf-8"))
    assert "loss at ≤ 6 ms" in shown and "loss at ≤ 10 ms" in page.text
    journals = [[json.loads(line) for line in (f / "journal.jsonl").read_text().splitlines()] for f in folders]
    every = [entry for journal in journals for entry in journal]
    names = ["first"] * len(journals[0]) + ["second"] * len(journals[1])
    points = page.data["points"]
    whose = [field["title"] for field in points["fields"]].index("run")
    assert [row["values"][whose] for row in points["rows"]] == names
    traces = page.traces(0)
    for name, own in zip(("first", "second"), journals, strict=True):
        front = next(trace for title, trace in traces.items() if title.startswith(f"Pareto front of {name} "))
        assert [every[n]["metrics"]["loss"] for n in front["customdata"]] == front["y"]
        assert min(front["y"]) == min(entry["metrics"]["loss"] for entry in own)
        cells = next(line for line in shown.splitlines() if line.startswith(name)).split()
        assert float(cells[1]) == pytest.approx(
            min(entry["metrics"]["loss"] for entry in own if entry["metrics"]["latency_ms"] <= 6), abs=1e-4
        )
    assert "differ in" not in page.text
    out = tmp_path / "both.html"
    assert main(["report", *map(str, folders), "--out", str(out)]) == 0 and out.stat().st_size > 10_000


def test_what_was_measured_above_a_limit_is_not_the_best_of_a_comparison(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [run("first"), run("second", seed=5)]
    content = json.loads((folders[0] / "finalists.json").read_text())
    best = next(one for one in content["finalists"] if "latency_ms<=6" in one["best_of"])
    best |= {"best_of": [], "over_limit": ["latency_ms<=6"], "measured": {"latency_ms": 6.5, "same_machine": True}}
    (folders[0] / "finalists.json").write_text(json.dumps(content))
    assert main(["report", *map(str, folders)]) == 0
    cells = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("first")).split()
    journal = [json.loads(line) for line in (folders[0] / "journal.jsonl").read_text().splitlines()]
    others = [e["metrics"]["loss"] for e in journal if e["metrics"]["latency_ms"] <= 6 and e["key"] != best["key"]]
    assert float(cells[1]) == pytest.approx(min(others), abs=1e-4) and min(others) > best["metrics"]["loss"]
    assert "first: ≤ 6 ms: none of 1 measured was within it" in (folders[0] / "comparison.html").read_text("utf-8")


def test_runs_that_cannot_be_compared(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = run("one", evaluations=3, settings={"data": "/a"})
    other = run("other", evaluations=3, settings={"data": "/b"})
    assert main(["report", str(one), str(other)]) == 0
    assert "The runs differ in data" in (one / "comparison.html").read_text(encoding="utf-8")
    top1 = run("top1", metric="-top1", evaluations=3)
    (tmp_path / "x.html").touch()
    capsys.readouterr()
    for arguments, message in (
        ([one, top1], "is to minimise loss"),
        ([one, one], "is given twice"),
        ([one, other, "--out", tmp_path / "x.html"], "--force"),
        ([one, other, "--out", tmp_path / "x.png"], "ends in .html"),
        ([one, other, "--train-log", "x"], "one search"),
        ([one, "--out", tmp_path / "y.html"], "several searches"),
        ([one, "--train-log", tmp_path / "absent.log"], "absent.log"),
    ):
        assert main(["report", *map(str, arguments)]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
