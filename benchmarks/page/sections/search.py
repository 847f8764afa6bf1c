"""What a search saves, and whether it survives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, interval, thousands
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, joined, spread, table, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS", "course", "median"]

TABLES = {
    "nasbench201": "NAS-Bench-201",
    "nasbench101": "NAS-Bench-101",
    "nasbench101-published": "NAS-Bench-101, published part",
}
STRATEGIES = ("random", "regularised evolution", "hat evolution", "ranknas", "ranknas, nn-former", "milp")
LABELS = {"hat evolution": "HAT's evolution", "ranknas": "RankNAS", "ranknas, nn-former": "RankNAS with NN-Former",
          "milp": "integer programs"}  # fmt: skip


def median(results: Results, table: str, strategy: str) -> float:
    """Queries until one of the best, the median over seeds."""
    return float(results.row("search_tables", table=table, strategy=strategy)["median"])


def _label(strategy: str) -> str:
    return LABELS.get(strategy, strategy)


def _queries(results: Results) -> Mapping[str, str]:
    content = results["search_tables"]
    found = {(row["table"], row["strategy"]): row for row in content["rows"]}

    def cell(table: str, strategy: str) -> str:
        row = found.get((table, strategy))
        if row is None:
            return ""
        if row["median"] >= content["budget"]:
            return f"none in {count(row['median'])}"
        return f"{row['median']:g} ({row['q25']:g} to {row['q75']:g})"

    one = found["nasbench201", "random"]
    published = found["nasbench101-published", "random"]
    return {
        **{f"nb201_{key}": count(median(results, "nasbench201", name)) for key, name in KEYS.items()},
        **{f"nb101_{key}": count(median(results, "nasbench101", name)) for key, name in KEYS.items()},
        "best201": count(one["best"]),
        "best101": count(found["nasbench101", "random"]["best"]),
        "seeds": str(one["seeds"]),
        "published_seeds": str(published["seeds"]),
        "budget": count(content["budget"]),
        "table": table(
            ["queries, median (quartiles)", *TABLES.values()],
            [[_label(name), *(cell(each, name) for each in TABLES)] for name in STRATEGIES],
        ),
    }


KEYS = dict(zip(("random", "regularised", "hat", "ranknas", "former", "milp"), STRATEGIES, strict=True))


def _draw_queries(results: Results, figure: Figure) -> None:
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    for axes, name in zip(panels, ("nasbench201", "nasbench101"), strict=True):
        for place, strategy in enumerate(STRATEGIES):
            row = results.row("search_tables", table=name, strategy=strategy)
            interval(axes, -place, row["q25"], row["median"], row["q75"], COLOURS[place])
        axes.set_xscale("log")
        axes.set_title(TABLES[name])
        thousands(axes, (20, 50, 100, 200, 500, 1000))
    figure.supxlabel("networks trained (queries)", fontsize="medium")
    panels[0].set_yticks([-place for place in range(len(STRATEGIES))], [_label(name) for name in STRATEGIES])


QUERIES = Section(
    "Queries",
    ("search_tables",),
    _queries,
    Picture(
        "queries", "Queries until one of the best networks is found, median and quartiles", _draw_queries, (6.8, 2.9)
    ),
)

DEFAULT_RANKNAS = "ranknas, five genes by loss and five by latency"
LIMITED = {
    "random": "random",
    "hat evolution": "`evolution` (HAT)",
    DEFAULT_RANKNAS: "`ranknas`, default pruning (by loss and latency)",
    "ranknas, five genes by loss": "`ranknas --set prune_by=metric`, genes by the loss alone",
    "ranknas, all genes": "`ranknas --set keep_genes=0`, all genes",
}
SHOWN = ("100", "200", "300")


def course(results: Results, strategy: str) -> Mapping[str, Any]:
    """The searches of one strategy under the limit."""
    return results.row("search_quality", strategy=strategy)


def _limited(results: Results) -> Mapping[str, str]:
    content = results["search_quality"]
    hat, free = course(results, "hat evolution"), course(results, "ranknas, all genes")
    both, loss = (
        course(results, DEFAULT_RANKNAS),
        course(results, "ranknas, five genes by loss"),
    )

    def reached(row: Mapping[str, Any]) -> str:
        return str(sum(count is not None for count in row["evaluations_to_evolutions_final_loss"]))

    def row(name: str, label: str) -> list[str]:
        found = course(results, name)
        mean = sum(found["final_loss"]) / len(found["final_loss"])
        after = [fixed(found["mean_loss_after"].get(place), 4) for place in SHOWN]
        return [label, *after, f"{fixed(mean, 4)} after {spread(found['evaluations'])}"]

    saved = [100 * share for share in content["saved_by_evolutions_cache"]]
    return {
        "limit": str(content["limit_ms"]),
        "updates": count(content["supernet_updates"]),
        "sentences": str(content["sentences"]),
        "seeds": str(len(hat["final_loss"])),
        "budget": spread(free["evaluations"]),
        "ranknas": joined(map(str, sorted(free["evaluations_to_evolutions_final_loss"]))),
        "hat": spread(hat["evaluations_to_evolutions_final_loss"]),
        "hat_all": spread(hat["evaluations"]),
        "both": reached(both),
        "loss": reached(loss),
        "free": reached(free),
        "saved": spread(saved),
        "table": table(
            ["loss after so many evaluations", *SHOWN, "at the end"], [row(*each) for each in LIMITED.items()]
        ),
    }


def _draw_limited(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    for (name, label), colour in zip(LIMITED.items(), (COLOURS[7], *COLOURS[1:3], COLOURS[3], COLOURS[0]), strict=True):
        after = course(results, name)["mean_loss_after"]
        axes.plot([int(place) for place in after], list(after.values()), "o-", color=colour, markersize=4,
                  label=label.replace("`", ""))  # fmt: skip
    axes.set_xscale("log")
    thousands(axes, (25, 50, 100, 200, 300, 500, 1000))
    axes.set_xlabel("evaluations of the supernet")
    axes.set_ylabel("loss (bits per token)")
    axes.legend(fontsize=9)


LIMIT = Section(
    "Search under a limit",
    ("search_quality",),
    _limited,
    Picture(
        "search-under-a-limit",
        "Loss over evaluations of five searches under one latency limit",
        _draw_limited,
        (6.8, 4.2),
    ),
)


def _robust(results: Results) -> Mapping[str, str]:
    ours, nni = results["search_robustness"], results["nni_robustness"]

    def same(row: Mapping[str, Any]) -> str:
        return f"{sum(row['identical'].values())} of {len(row['identical'])}"

    rows = [[f"`{row['strategy']}`", "`nas-ext search`", count(row["evaluations"]), str(row["kills"]), same(row)]
            for row in ours["rows"]]  # fmt: skip
    rows += [[f"`{row['strategy']}`", "NNI experiment", count(row["trials"]), str(row["kills"]), same(row)]
             for row in nni["rows"]]  # fmt: skip
    return {
        "kills": spread([row["kills"] for row in ours["rows"]]),
        "strategies": str(len(ours["rows"])),
        "nni_kills": spread([row["kills"] for row in nni["rows"]]),
        "nni_strategies": joined(f"`{row['strategy']}`" for row in nni["rows"]),
        "all": "all" if ours["all_identical"] else "NOT all",
        "nni_all": "all" if all(all(row["identical"].values()) for row in nni["rows"]) else "NOT all",
        "table": table(["strategy", "run by", "evaluations", "kills", "files identical"], rows, left=2),
    }


ROBUST = Section("Robustness", ("search_robustness", "nni_robustness"), _robust)


def _speed(results: Results) -> Mapping[str, str]:
    content = results["search_throughput"]
    rate = content["candidates_per_s"]
    low, high = content["ratio_range"]
    return {
        "rate": count(rate["vectorised"]),
        "slow": count(rate["one_by_one"]),
        "ratio": times(content["ratio"], 0),
        "range": f"{fixed(low, 0)} to {fixed(high, 0)}",
        "whole": count(content["whole_search_candidates_per_s"]),
    }


SPEED = Section("Search speed", ("search_throughput",), _speed)
SECTIONS = (LIMIT, QUERIES, ROBUST, SPEED)
