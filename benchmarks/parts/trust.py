"""Conditions under which supernets can be compared, and the comparison with intervals.

Shapes: S seeds of supernets, N networks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

BASELINE = "sandwich"
SIZE_TAU = 0.6
"""Smallest accepted tau of quality from scratch with parameters, and with quality from scratch after twice the
updates.
"""
ROUTING = 0.2
"""Smallest accepted Jensen-Shannon distance of routing between the smallest and largest network; the paper has .25 to
.30.
"""
EFFECT = 0.12
"""Smallest relative change of the error that the paper reports."""
SANDWICH = 3
"""Number of subnets per update of the sandwich rule: the largest, a random and the smallest one."""
SEEDS = 3
"""Smallest accepted number of seeds of a method."""
CENSORED = 0.2
"""Largest accepted share of networks that do not become as good as from scratch."""
DRAWS = 2000
"""Number of bootstrap resamples."""

Qualities = NDArray[np.float64]
Records = Sequence[Mapping[str, Any]]


def standalone(records: Records, metric: str, updates: int, seed: int | None = None) -> Qualities:
    """Return qualities from scratch ``(N,)``: the mean over seeds or of one seed; NaN for networks that are not
    trained.
    """
    chosen = [
        r for r in records if r["method"] == "standalone" and r["updates"] == updates and seed in (None, r["seed"])
    ]
    count = max((r["network"] for r in records if r["network"] is not None), default=-1) + 1
    values = [[r[metric][0] for r in chosen if r["network"] == index] for index in range(count)]
    return np.asarray([np.mean(row) if row else np.nan for row in values])


def inherited(records: Records, method: str, metric: str, updates: int) -> Qualities:
    """Return qualities ``(S, N)`` with the weights of a method's supernets."""
    chosen = [r for r in records if r["method"] == method and r["updates"] == updates and r["network"] is None]
    return np.asarray([r[metric] for r in sorted(chosen, key=lambda r: r["seed"])])


def conditions(records: Records, params_m: Sequence[float], task: Any) -> list[dict[str, Any]]:
    """Return each condition with its value, its limit, and True if it is met (None: not measured yet)."""
    updates = task.updates
    seeds = sorted({r["seed"] for r in records if r["method"] == "standalone" and r["updates"] == updates})
    rows = []
    for metric in (*task.metrics, "nll_loss"):
        by_seed = [standalone(records, metric, updates, seed) for seed in seeds]
        longer = standalone(records, metric, 2 * updates, 1)
        sign = -1 if metric == "nll_loss" else 1
        complete = [row for row in by_seed if len(row) == len(params_m) and not np.isnan(row).any()]
        if metric == "nll_loss":
            networks = _condition("standalone networks x seeds", len(params_m) * len(complete), 32)
            rows.append(networks | {"metric": "all"})
        quality = np.mean(complete, axis=0) if complete else None
        size = _condition("tau of parameters and standalone quality", _tau(params_m, quality, sign), SIZE_TAU)
        doubled = _tau(complete[0], longer) if complete and not np.isnan(longer).any() else None
        order = _condition("tau of standalone quality with that after twice the updates", doubled, SIZE_TAU)
        loss_of_order = None
        if doubled is not None and len(complete) > 1:
            loss_of_order = _highest_difference(complete[0], longer, complete[1])
        noise = _condition("tau after twice the updates less tau of two seeds, upper end of 95 %", loss_of_order, 0.0)
        rows += [row | {"metric": metric} for row in (size, order, noise)]
    for method in dict.fromkeys(r["method"] for r in records if "routing" in r):
        routing = _routing(records, method, updates)
        row = _condition(f"routing distance, {method}", float(np.mean(routing)) if routing else None, ROUTING)
        rows.append(row | {"metric": "all", "method": method})
    return rows


def _condition(name: str, value: float | None, least: float | None) -> dict[str, Any]:
    met = None if value is None or least is None else bool(value >= least)
    return {"condition": name, "value": value, "least": least, "met": met}


def _routing(records: Records, method: str, updates: int) -> list[float]:
    return [r["routing"] for r in records if r["method"] == method and r["updates"] == updates and "routing" in r]


def _highest_difference(quality: Qualities, first: Qualities, second: Qualities) -> float:
    """Return the upper end of the 95 % interval, over networks, of the difference between two taus with a quality."""
    stream = np.random.default_rng(0)
    values = np.empty(DRAWS)
    for draw in range(DRAWS):
        chosen = stream.integers(len(quality), size=len(quality))
        values[draw] = np.subtract(*(tau(other[None, chosen], quality[chosen]) for other in (first, second)))
    return float(np.percentile(values, 97.5))


def _tau(first: Any, second: Any, sign: int = 1) -> float | None:
    return None if second is None else sign * float(kendalltau(first, second).statistic)


def error(estimates: Qualities, reference: Qualities) -> float:
    return float(np.abs(estimates - reference).mean())


def centred_error(estimates: Qualities, reference: Qualities) -> float:
    """Return the mean absolute difference after subtraction of each supernet's mean difference."""
    difference = estimates - reference
    return float(np.abs(difference - difference.mean(1, keepdims=True)).mean())


def tau(estimates: Qualities, reference: Qualities) -> float:
    """Return the mean of Kendall's tau-b over supernets; faster than scipy's on few networks."""
    signs = np.sign(estimates[:, :, None] - estimates[:, None])
    expected = np.sign(reference[:, None] - reference)
    products = np.sqrt((signs**2).sum((1, 2)) * (expected**2).sum())
    return float(np.mean((signs * expected).sum((1, 2)) / np.maximum(products, 1)))


def inherited_mean(estimates: Qualities, reference: Qualities) -> float:
    return float(estimates.mean())


FIGURES: dict[str, Callable[[Qualities, Qualities], float]] = {
    "error": error, "centred_error": centred_error, "tau": tau, "inherited": inherited_mean
}  # fmt: skip


def verdicts(records: Records, task: Any, checked: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each method's figures with 95 % intervals, and its difference to sandwich with a verdict.

    Seeds and networks are resampled with replacement, networks jointly for both methods. If the interval of a
    difference contains zero, the verdict is "no difference" for an interval narrower than twice the paper's effect,
    otherwise "cannot tell". With too few seeds or an unmet condition of its metric, listed in ``lacks``, it is "cannot
    tell". An unmet condition on routing does not void "better": too little routing can hide an effect, not feign one.
    """
    rows = []
    for metric in (*task.metrics, "nll_loss"):
        reference = standalone(records, metric, task.updates)
        if not len(reference) or np.isnan(reference).any():
            continue
        for compared_at, baseline, updates, single_path in (
            ("equal updates", BASELINE, task.updates, task.updates),
            ("equal passes", BASELINE, task.updates // SANDWICH, task.updates),
            ("equal passes, all updates", BASELINE, task.updates, SANDWICH * task.updates),
            ("equal passes, all updates, to SPOS", "SPOS", SANDWICH * task.updates, SANDWICH * task.updates),
        ):
            base = inherited(records, baseline, metric, updates)
            if single_path > task.updates and not len(inherited(records, "SPOS", metric, single_path)):
                continue
            for method in dict.fromkeys(r["method"] for r in records if r["network"] is None and metric in r):
                trained_for = single_path if "SPOS" in method else updates
                estimates = inherited(records, method, metric, trained_for)
                if not len(estimates) or not len(base):
                    continue
                if single_path > task.updates and "SPOS" not in method and method != baseline:
                    continue  # its comparison at equal updates is one at equal passes
                unmet = [c for c in checked if not c["met"] and c["metric"] in (metric, "all")]
                lacks = [c["condition"] for c in unmet if "method" not in c]
                routing = [c["condition"] for c in unmet if c.get("method") == method]
                if few := min(len(estimates), len(base)) < SEEDS:
                    lacks.append(f"{SEEDS} seeds of " + " and of ".join(dict.fromkeys((method, baseline))))
                row: dict[str, Any] = {
                    "metric": metric, "compared_at": compared_at, "method": method, "seeds": len(estimates),
                    "lacks": lacks + routing,
                }  # fmt: skip
                if distances := _routing(records, method, trained_for):
                    row["routing"] = float(np.mean(distances))
                for name, figure in FIGURES.items():
                    row[name] = figure(estimates, reference)
                    row |= _interval(figure, estimates, base, reference, name)
                    if method != baseline:
                        size = error if name == "inherited" else figure
                        scale = 0.1 if name == "tau" else EFFECT * size(base, reference)
                        larger_is_better = name == "tau" or (name == "inherited" and metric != "nll_loss")
                        verdict = _verdict(*row[f"{name}_difference"][1:], scale, larger_is_better)
                        undecided = few if name == "inherited" else lacks or (routing and verdict != "better")
                        row[f"{name}_verdict"] = "cannot tell" if undecided else verdict
                rows.append(row)
    return rows


def further_verdicts(records: Records) -> list[dict[str, Any]]:
    """Return for each method the updates until extracted networks are as good as from scratch, with 95 % intervals.

    They are relative to the updates from scratch, which also count for networks that do not become as good. More than
    :data:`CENSORED` of these, or too few seeds, void the verdict.
    """
    shares: dict[str, list[list[float | None]]] = {}
    for record in sorted((r for r in records if "shares" in r), key=lambda r: r["seed"]):
        shares.setdefault(record["method"], []).append(record["shares"])
    base = next((name for name in shares if name.startswith(BASELINE)), None)
    rows = []
    for method, by_seed in shares.items():
        values = np.asarray(by_seed, float)  # None: NaN
        censored = float(np.isnan(values).mean())
        row: dict[str, Any] = {"method": method, "seeds": len(values), "not_reached": censored}
        compared = np.nan_to_num(np.asarray(shares[base or method], float), nan=1.0)
        values = np.nan_to_num(values, nan=1.0)
        row["updates"] = float(values.mean())
        row |= _interval(lambda drawn, _: float(drawn.mean()), values, compared, values[0], "updates")
        if base not in (None, method):
            enough = min(len(values), len(compared)) >= SEEDS
            few = max(censored, float(np.isnan(np.asarray(shares[str(base)], float)).mean())) <= CENSORED
            verdict = _verdict(*row["updates_difference"][1:], EFFECT * float(compared.mean()), False)
            row["verdict"] = verdict if enough and few else "cannot tell"
        rows.append(row)
    return rows


def _interval(
    figure: Callable[[Qualities, Qualities], float],
    estimates: Qualities,
    base: Qualities,
    reference: Qualities,
    name: str,
) -> dict[str, Any]:
    stream = np.random.default_rng(0)
    values = np.empty((DRAWS, 2))
    for draw in range(DRAWS):
        columns = stream.integers(len(reference), size=len(reference))
        for side, rows in enumerate((estimates, base)):
            chosen = rows[stream.integers(len(rows), size=len(rows))][:, columns]
            values[draw, side] = figure(chosen, reference[columns])
    interval = np.percentile(values[:, 0], (2.5, 97.5)).tolist()
    difference = np.percentile(values[:, 0] - values[:, 1], (2.5, 97.5)).tolist()
    mean = figure(estimates, reference) - figure(base, reference)
    return {f"{name}_interval": interval, f"{name}_difference": [mean, *difference]}


def _verdict(low: float, high: float, effect: float, larger_is_better: bool) -> str:
    if low > 0 or high < 0:
        return "better" if (low > 0) == larger_is_better else "worse"
    return "no difference" if high - low <= 2 * effect else "cannot tell"
