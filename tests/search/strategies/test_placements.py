"""Placements of attention that need no search, evaluated with a search and listed in its report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.plugins.attention import AVERAGE
from nas_core.cli import main
from nas_core.errors import ArchitectureError, ConfigError
from nas_core.layers.attention import KINDS
from nas_core.report.run import read_run
from nas_core.report.search_page import baselines_table
from nas_core.search import Constraint, RandomConfig, RandomSearch, search
from nas_core.search.placements import placements
from nas_core.space import Architecture, SearchSpace, get_space
from nas_core.space.language import language_space
from nas_core.supernet.elastic.space_spec import attention_only
from tests.contracts.strategy import SPACE
from tests.search.runs import journal, run
from tests.toys import ToySupernet

DEPTH = 4


def space(*attention: str) -> SearchSpace:
    return language_space(
        "placed",
        layers=(DEPTH, 2),
        embed_dims=(16, 8),
        ffn_dims=(16, 8),
        heads=(2, 1),
        head_dim=8,
        context_length=32,
        attention=attention or ("softmax", "linear"),
    )


def score(architecture: Architecture) -> dict[str, float]:
    """Softmax is worth most in the second layer."""
    worth = (1.0, 4.0, 2.0, 1.5)
    kinds = architecture["attention"]
    assert isinstance(kinds, tuple)
    return {"loss": 10.0 - sum(each for each, kind in zip(worth, kinds, strict=True) if kind == "softmax")}


def test_each_placement_is_the_largest_network_with_other_attention() -> None:
    by_name = placements(space())
    kinds = {name: "".join(str(kind)[0] for kind in each["attention"]) for name, each in by_name.items()}  # type: ignore[union-attr]
    assert kinds == {
        "linear in every layer": "llll",
        "linear in every second layer": "slsl",
        "linear in the first 1": "lsss",
        "linear in the last 1": "sssl",
        "linear in the first 2": "llss",
        "linear in the last 2": "ssll",
        "linear in the first 3": "llls",
        "linear in the last 3": "slll",
    }
    largest = space().largest()
    for placement in by_name.values():
        assert {**placement, "attention": 0} == {**largest, "attention": 0} and placement in space()


def test_kinds_stand_where_they_may_and_nowhere_twice() -> None:
    by_name = placements(get_space("mformer_translation_small"))
    assert len(set(by_name.values())) == len(by_name)
    assert all(each in get_space("mformer_translation_small") for each in by_name.values())
    KINDS.register("average", AVERAGE)
    try:
        three = placements(space("softmax", "linear", "average"))
    finally:
        KINDS.unregister("average")
    assert len(three) == 16 and {name.split()[0] for name in three} == {"linear", "average"}
    with pytest.raises(ConfigError, match="one kind of attention"):
        placements(get_space("hat_small"))


def test_given_architectures_are_evaluated_once_before_the_search_and_kept_when_it_continues(tmp_path: Path) -> None:
    largest, smallest = SPACE.largest(), SPACE.smallest()
    settings = {"large": largest, "again": largest, "small": smallest}
    first = run(tmp_path / "with", given=settings)
    records = journal(tmp_path / "with")
    assert [(each["search"], each["key"]) for each in records[:2]] == [
        ("given", largest.key), ("given", smallest.key)]  # fmt: skip
    assert len({each["key"] for each in records}) == len(records) == first.evaluations
    assert run(tmp_path / "with", given=settings).replayed == first.evaluations
    with pytest.raises(ConfigError, match="given"):
        run(tmp_path / "with", given={"large": largest})
    alone = run(tmp_path / "alone")
    assert [each.metrics["loss"] for each in alone.best.values()] >= [
        each.metrics["loss"] for each in first.best.values()]  # fmt: skip
    with pytest.raises(ArchitectureError):
        run(tmp_path / "other", given={"foreign": Architecture({"layers": 3})})


def softmax(architecture: Architecture) -> int:
    kinds = architecture["attention"]
    assert isinstance(kinds, tuple)
    return kinds.count("softmax")


def test_what_no_search_allows_is_compared_but_no_finalist(tmp_path: Path) -> None:
    placed = attention_only(space())
    limit = Constraint.per_architecture("softmax", 2.0, placed, softmax)
    strategy = RandomSearch(placed, [limit], RandomConfig(evaluations=3), seed=0)
    by_name = search(strategy, score, tmp_path, given=placements(placed), progress=False, finalists=20)
    assert len(by_name.evaluated) >= 8 and all(softmax(one.architecture) <= 2 for one in by_name.finalists)
    assert set(map(softmax, by_name.evaluated)) >= {0, 1, 2, 3}
    assert len(baselines_table(read_run(tmp_path)).rows) == 8


def test_the_command_compares_with_placements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = ToySupernet(space(), score, {"kind": "language", "vocab": 20})
    monkeypatch.setattr("nas_core.supernet.host.open_supernet", lambda path, **options: toy)
    (tmp_path / "net.pt").write_bytes(b"weights")
    command = ["search", "--checkpoint", str(tmp_path / "net.pt"), "--strategy", "random", "--set", "evaluations=5"]
    assert main([*command, "--out", str(tmp_path / "run"), "--placements"]) == 0, capsys.readouterr().err
    config = (tmp_path / "run" / "config.yaml").read_text()
    assert "linear in every second layer" in config
    names = [json.loads(line)["search"] for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert names == ["given"] * 8 + ["unlimited"] * 5
    assert main(["report", str(tmp_path / "run")]) == 0
    assert "Compared with" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
