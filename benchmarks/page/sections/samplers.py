"""How our strategies compare with Optuna's own samplers."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.page.results import Results
from benchmarks.page.section import Section
from benchmarks.page.words import count, fixed, table

__all__ = ["SECTIONS"]

NAME = "optuna_samplers"
TABLES = {"nasbench201": "NAS-Bench-201", "nasbench101": "NAS-Bench-101"}
LABELS = {
    "random": "random (Optuna)",
    "nsga-ii": "NSGA-II (Optuna)",
    "tpe": "TPE (Optuna)",
    "hat evolution": "HATEvolutionSampler",
    "ranknas": "RankNASSampler",
}
KEYS = {"random": "random", "nsga": "nsga-ii", "tpe": "tpe", "hat": "hat evolution", "ranknas": "ranknas"}


def _values(results: Results) -> Mapping[str, str]:
    content = results[NAME]
    rows = {(row["table"], row["sampler"]): row for row in content["rows"]}
    budget = content["budget"]

    def queries(benchmark: str, sampler: str) -> str:
        found = rows[benchmark, sampler]["median"]
        return f"more than {count(budget)}" if found >= budget else f"{found:g}"

    def accuracy(benchmark: str, sampler: str) -> str:
        found = rows[benchmark, sampler]["accuracy_after"][str(budget)]
        low, median, high = (fixed(100 * found[name], 2) for name in ("q25", "median", "q75"))
        return f"{median} ({low} to {high})"

    head = [f"{what}, {label}" for label in TABLES.values() for what in ("queries", f"accuracy after {count(budget)}")]
    lines = [
        [label, *(cell(each, name) for each in TABLES for cell in (queries, accuracy))]
        for name, label in LABELS.items()
    ]
    return {
        **{f"{key}{each[-3:]}": queries(each, name) for key, name in KEYS.items() for each in TABLES},
        **{f"{key}_ms": fixed(rows["nasbench201", KEYS[key]]["ms_per_trial"], 0) for key in ("ranknas", "hat", "tpe")},
        "budget": count(budget),
        "seeds": str(rows["nasbench201", "random"]["seeds"]),
        "table": table(["median (quartiles)", *head], lines),
    }


SECTIONS = (Section("Samplers of Optuna", (NAME,), _values),)
