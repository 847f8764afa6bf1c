"""What is known of networks before one is trained, in spaces that were left out; shown once its result is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.page.results import Results
from benchmarks.page.section import Section
from benchmarks.page.sections.accuracy_tables import SHORT
from benchmarks.page.words import count, fixed, spread, table

__all__ = ["SECTIONS"]

NAME = "prior"


def _before(results: Results) -> str:
    rows = [
        [
            SHORT[row["benchmark"]],
            fixed(row["tau"], 3),
            fixed(row["aim"], 2),
            f"{fixed(row['proxy_tau'], 3)} ({row['proxy']})",
            count(row["best_of_50"]),
            fixed(row["tau_top_tenth"], 3),
        ]
        for row in results.rows(NAME, size=0)
    ]
    head = [
        "never seen",
        "Kendall's tau",
        "aim",
        "best published proxy",
        "place of the best of 50",
        "tau of the best tenth",
    ]
    return table(head, rows)


def _after(results: Results) -> str:
    found: dict[tuple[str, int], dict[str, Mapping[str, Any]]] = {}
    for row in results.rows(NAME):
        if row["size"]:
            found.setdefault((row["benchmark"], row["size"]), {})[row["recipe"]] = row
    rows = []
    for (benchmark, size), recipes in found.items():
        prior, alone = recipes["prior"], recipes.get("statistics")
        within = [fixed(100 * prior[f"within_{times}"], 0) for times in (1, 2)]
        before = "" if alone is None else fixed(alone["tau"], 3)
        told = f"{fixed(prior['tau'], 3)} ± {fixed(prior['deviation'], 3)} ({prior['draws']})"
        rows.append([f"{SHORT[benchmark]}: {count(size)}", told, before, fixed(prior["aim"], 2), *within])
    head = ["learned from", "`prior` (draws)", "`statistics`", "aim", "within one spread, %", "within two, %"]
    return table(head, rows)


def _values(results: Results) -> Mapping[str, str]:
    judged = {row["judged"] for row in results.rows(NAME) if row["judged"] != "all"}
    return {
        "before": _before(results),
        "after": _after(results),
        "left_out": spread([row["tau"] for row in results.rows(NAME, size=0)], 2),
        "left_out_proxy": spread([row["proxy_tau"] for row in results.rows(NAME, size=0)], 2),
        "judged": "all" if not judged else f"{count(min(judged))} cells, drawn at random,",
    }


SECTIONS = (Section("Before anything is trained", (NAME,), _values, optional=True),)
