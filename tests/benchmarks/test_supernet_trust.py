"""Conditions and verdicts of supernet_trust: which differences are shown, and which are not decided."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

from benchmarks.parts import trust
from benchmarks.parts.trust import conditions, further_verdicts, verdicts

TASK = SimpleNamespace(metrics=(), updates=30)
SIZES = list(range(1, 17))
ORDER = "tau of standalone quality with that after twice the updates"
NOISE = "tau after twice the updates less tau of two seeds, upper end of 95 %"
TWICE = {
    "equal": list(range(16)),
    "near": [1, 0, *range(2, 16)],
    "shuffled": [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12],
    "reversed": list(range(15, -1, -1)),
}
"""Order of the networks after twice the updates."""


def records(
    supernet_seeds: int, routing: float = 0.3, twice: str | None = "equal", bias: float = 0.2
) -> list[dict[str, Any]]:
    """Return losses that fall with size; by default experts halve the error of sandwich."""
    noise = np.random.default_rng(0)
    losses = np.linspace(2, 1, len(SIZES))
    rows: list[dict[str, Any]] = []
    for seed, updates in ((1, 30), (2, 30), *([(1, 60)] if twice else [])):
        order = TWICE[twice if twice and updates == 60 else "equal"]
        rows += [{"method": "standalone", "network": i, "seed": seed, "updates": updates, "nll_loss": [loss]}
                 for i, loss in enumerate(losses[order])]  # fmt: skip
    for seed in range(1, supernet_seeds + 1):
        for method, error in (("sandwich", 0.4), ("neuron-wise", bias)):
            estimates = losses + error + noise.normal(scale=0.01, size=len(SIZES))
            row = {"method": method, "network": None, "seed": seed, "updates": 30, "nll_loss": list(estimates)}
            rows.append(row | ({"routing": routing} if method == "neuron-wise" else {}))
    return rows


def test_tau_equals_scipys() -> None:
    drawn = np.random.default_rng(0).integers(0, 9, (4, 16)).astype(float)  # with ties
    expected = [kendalltau(row, drawn[0]).statistic for row in drawn[1:]]
    assert trust.tau(drawn[1:], drawn[0]) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    ("changes", "verdict", "lacks"),
    [
        ({}, "better", []),
        ({"supernet_seeds": 1}, "cannot tell", ["3 seeds of neuron-wise and of sandwich"]),
        ({"routing": 0.1}, "better", ["routing distance, neuron-wise"]),
        ({"bias": 0.6}, "worse", []),
        ({"bias": 0.6, "routing": 0.1}, "cannot tell", ["routing distance, neuron-wise"]),
        ({"twice": None}, "cannot tell", [ORDER, NOISE]),
        ({"twice": "near"}, "better", []),
        ({"twice": "reversed"}, "cannot tell", [ORDER, NOISE]),
        ({"twice": "shuffled"}, "cannot tell", [NOISE]),
    ],
)  # fmt: skip
def test_a_verdict_needs_all_conditions(
    changes: dict[str, Any], verdict: str, lacks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "DRAWS", 100)
    rows = records(**{"supernet_seeds": 3, **changes})
    results = {row["method"]: row for row in verdicts(rows, TASK, conditions(rows, SIZES, TASK))}
    neuron = results["neuron-wise"]
    assert (neuron["error_verdict"], neuron["lacks"]) == (verdict, lacks)
    bias = changes.get("bias", 0.2)
    assert neuron["error"] == pytest.approx(bias, abs=0.01)
    assert neuron["error_difference"][0] == pytest.approx(bias - 0.4, abs=0.01)
    assert "error_verdict" not in results["sandwich"]


def test_spos_is_compared_at_equal_updates_and_at_equal_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "DRAWS", 100)
    rows = records(3)
    sandwich = [row for row in rows if row["method"] == "sandwich"]
    for method, updates, change in (("SPOS", 30, 0.2), ("SPOS", 90, -0.3), ("neuron-wise, SPOS", 90, -0.2)):
        for row in sandwich:
            losses = [loss + change for loss in row["nll_loss"]]
            rows.append({**row, "method": method, "updates": updates, "nll_loss": losses})
    compared = {(row["compared_at"], row["method"]): row for row in verdicts(rows, TASK, conditions(rows, SIZES, TASK))}
    all_updates, to_spos = "equal passes, all updates", "equal passes, all updates, to SPOS"
    for passes, method, error, verdict in (
        ("equal updates", "SPOS", 0.6, "worse"),
        (all_updates, "SPOS", 0.1, "better"),
        (all_updates, "neuron-wise, SPOS", 0.2, "better"),
        (to_spos, "neuron-wise, SPOS", 0.2, "worse"),
    ):
        row = compared[passes, method]
        assert (round(row["error"], 1), row["error_verdict"], row["inherited_verdict"]) == (error, verdict, verdict)
        assert row["inherited"] == pytest.approx(1.5 + error, abs=0.01)
    assert {method for passes, method in compared if passes == to_spos} == {"SPOS", "neuron-wise, SPOS"}


@pytest.mark.parametrize(
    ("shares", "seeds", "verdict"),
    [
        ([0.25, 0.125, 0.25, 0.125], 3, "better"),
        ([1.0, 1.0, 1.0, 0.5], 3, "worse"),
        ([0.5, 0.5, 0.5, 0.5], 3, "no difference"),
        ([0.25, 0.125, 0.25, 0.125], 2, "cannot tell"),
        ([0.25, 0.125, 0.25, None], 3, "cannot tell"),
    ],
)
def test_further_training_is_compared_by_updates(
    shares: list[float | None], seeds: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "DRAWS", 100)
    rows = [
        {"method": f"{method}, trained further", "network": None, "seed": seed, "updates": 30, "shares": values}
        for seed in range(1, seeds + 1)
        for method, values in (("sandwich", [0.5] * 4), ("neuron-wise", shares))
    ]
    baseline, ours = further_verdicts(rows)
    assert (baseline["updates"], baseline["not_reached"], "verdict" in baseline) == (0.5, 0, False)
    counted = [1.0 if share is None else share for share in shares]
    assert ours["updates"] == pytest.approx(np.mean(counted)) and ours["verdict"] == verdict
    assert ours["updates_difference"][0] == pytest.approx(np.mean(counted) - 0.5)
    assert ours["not_reached"] == shares.count(None) / 4
    assert verdicts([*records(3), *rows], TASK, conditions(records(3), SIZES, TASK))
