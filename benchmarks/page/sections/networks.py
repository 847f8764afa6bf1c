"""Latency of whole networks: families left out, published networks, sizes beyond the training's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, GREY
from benchmarks.page.results import Results
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, joined, spread, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS", "error"]

MODELS = ("flops", "counts", "graphsage", "nn-former", "ensemble")
DRAWN = {"flops": (COLOURS[7], "s"), "counts": (COLOURS[4], "D"), "graphsage": (COLOURS[1], "^"),
         "nn-former": (COLOURS[2], "v"), "ensemble": (COLOURS[0], "o")}  # fmt: skip


def error(
    results: Results, model: str, family: str = "average", kind: str = "out_of_domain", name: str = "mape_percent"
) -> float:
    """A figure of one model, on one family or on average."""
    return float(results["network_latency"]["tables"][kind][model][family][name])


def _networks(results: Results) -> Mapping[str, str]:
    content = results["network_latency"]
    families = list(content["data"]["families"])
    inside, within = content["tables"]["in_domain"], content["within_spread_percent"]

    def row(label: str, figures: list[float]) -> list[str]:
        return [label, *map(fixed, figures)]

    rows = [row("in-domain", [error(results, model, "average", "in_domain") for model in MODELS])]
    rows += [row(family, [error(results, model, family) for model in MODELS]) for family in families]
    rows.append(row("average", [error(results, model) for model in MODELS]))
    ten = "acc10_percent"
    rows.append(row("within 10 %: in-domain", [error(results, model, "average", "in_domain", ten) for model in MODELS]))
    rows.append(row("within 10 %: average", [error(results, model, name=ten) for model in MODELS]))
    rows.append(row("within the spread: in-domain", [within[model]["in-domain"] for model in MODELS]))
    rows.append(row("within the spread: average", [within[model]["average"] for model in MODELS]))
    seeded = [model for model in MODELS if inside[model]["seeds"] > 1]
    aim = next(each for each in content["aims"] if each["model"] == "nn-former" and "in-domain" in each["aim"])
    return {
        "networks": count(content["data"]["networks"]),
        "families": str(len(families)),
        "each": spread(list(content["data"]["families"].values())),
        "runtime": content["data"]["runtime"],
        "ensemble": fixed(error(results, "ensemble")),
        "ensemble_in": fixed(error(results, "ensemble", kind="in_domain")),
        "flops": fixed(error(results, "flops")),
        "ensemble_within": fixed(within["ensemble"]["average"], 0),
        "graphsage": fixed(error(results, "graphsage")),
        "graphsage_in": fixed(error(results, "graphsage", kind="in_domain")),
        "former": fixed(error(results, "nn-former")),
        "former_in": fixed(error(results, "nn-former", kind="in_domain")),
        "missed": "misses" if not aim["met"] else "meets",
        "aim": aim["aim"].split("below ")[1],
        "seeded": joined(f"`{model}`" for model in seeded),
        "seeds": str(inside[seeded[0]]["seeds"]),
        "deviation": spread([inside[model]["average"]["mape_percent_deviation"] for model in seeded], 1),
        "paper_networks": count(results.published("nnformer_training_networks")),
        "paper_in": fixed(results.published("nnformer_in_domain_mape_percent"), 2),
        "paper_out": fixed(results.published("nnformer_out_of_domain_mape_percent"), 2),
        "table": table(["error %", *(f"`{model}`" for model in MODELS)], rows),
    }


def _draw_networks(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    families = list(results["network_latency"]["data"]["families"])
    places = sorted(families, key=lambda family: error(results, "ensemble", family))
    for model, (colour, marker) in DRAWN.items():
        size, above = (8.0, 3) if model == "ensemble" else (5.5, 2)
        errors = [error(results, model, family) for family in places]
        axes.plot(errors, range(len(places)), marker, color=colour, markersize=size, label=model, zorder=above)
    axes.set_yticks(range(len(places)), places)
    axes.set_xlim(left=0)
    axes.set_xlabel("mean error on a family that no training network is of (%)")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(DRAWN))


NETWORKS = Section(
    "Network latency",
    ("network_latency",),
    _networks,
    Picture(
        "network-latency",
        "Error of five latency models on each family, left out of the training",
        _draw_networks,
        (6.8, 4.8),
    ),
)


def _published(results: Results) -> Mapping[str, str]:
    content = results["published_networks"]
    one, four = (content["batches"][batch] for batch in ("1", "4"))
    singles = [row for row in content["rows"] if row["batch"] == 1]
    fours = [row for row in content["rows"] if row["batch"] == 4]
    worst = sorted(singles, key=lambda row: row["error_percent"])[:5]
    errors = [abs(row["error_percent"]) for row in singles]
    part = sum(abs(row["error_percent"]) for row in worst) / sum(errors)
    longer = [100 * (row["measured_ms"] / row["predicted_ms"] - 1) for row in worst]
    two = [abs(row["measured_ms"] - row["predicted_ms"]) <= 2 * row["spread_ms"] for row in fours]

    def members(figures: Mapping[str, Any], name: str) -> list[str]:
        found = figures["members"].get(name, figures)
        spread_held = fixed(found.get("within_spread_percent"))
        return [
            fixed(found["mape_percent"]),
            fixed(found["median_percent"]),
            fixed(found["acc10_percent"]),
            spread_held,
        ]

    return {
        "networks": str(one["networks"]),
        "mean": fixed(one["mape_percent"]),
        "median": fixed(one["median_percent"]),
        "ten": fixed(one["acc10_percent"], 0),
        "spread": fixed(one["within_spread_percent"], 0),
        "batch_mean": fixed(four["mape_percent"], 0),
        "batch_spread": fixed(four["within_spread_percent"], 0),
        "batch_two": fixed(100 * sum(two) / len(two), 0),
        "batch_low": f"{sum(row['error_percent'] < 0 for row in fours)} of {len(fours)}",
        "part": fixed(100 * part, 0),
        "longer": spread(longer),
        "worst": joined(f"`{row['network']}`" for row in worst),
        "table": table(
            ["model", "batch", "mean error %", "median %", "within 10 %", "within the spread %"],
            [
                [label, batch, *members(content["batches"][batch], name)]
                for batch in ("1", "4")
                for label, name in (
                    ("ensemble", ""),
                    ("NN-Former alone", "nn-former"),
                    ("GraphSAGE alone", "graphsage"),
                )
            ],
        ),
    }


def _draw_published(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    rows = {(row["network"], row["batch"]): row for row in results["published_networks"]["rows"]}
    names = [name for name, batch in rows if batch == 1]
    names.sort(key=lambda name: -rows[name, 1]["error_percent"])
    for batch, colour, marker, shift in ((4, COLOURS[1], "s", -0.2), (1, COLOURS[0], "o", 0.2)):
        shown = [rows[name, batch] for name in names]
        places = [place + shift for place in range(len(names))]
        for row, place in zip(shown, places, strict=True):
            spread_percent = 100 * row["spread_ms"] / row["measured_ms"]
            ends = [row["error_percent"] - spread_percent, row["error_percent"] + spread_percent]
            axes.plot(ends, [place, place], color=colour, linewidth=2.2, alpha=0.35, solid_capstyle="round")
        axes.plot([row["error_percent"] for row in shown], places, marker, color=colour, markersize=4.5, linestyle="",
                  label=f"batch {batch}")  # fmt: skip
    axes.plot([], [], color=GREY, linewidth=2.2, alpha=0.6, label="predicted spread")
    axes.axvline(0, color=GREY, linewidth=1.4)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(-0.8, len(names) - 0.2)
    axes.set_xlabel("error of the prediction (%), negative where it is too short")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)


PUBLISHED = Section(
    "Published networks",
    ("published_networks",),
    _published,
    Picture(
        "published-networks",
        "Error of the predicted latency of each of timm's networks, with the predicted spread",
        _draw_published,
        (6.8, 7.2),
    ),
)


def _beyond(results: Results) -> Mapping[str, str]:
    content = results["extrapolation"]
    ratios = [row["relative_ratio"] for row in content["rows"] if "relative_ratio" in row]
    networks = {row["network"] for row in content["rows"]}
    language = {name for name in networks if name.startswith("lm")}
    return {
        "language": str(len(language)),
        "others": str(len(networks - language)),
        "sizes": str(content["beyond"]),
        "mean": fixed(content["mean_error_percent"], 0),
        "low": f"{sum(ratio > 1 for ratio in ratios)} of {len(ratios)}",
        "one": fixed(content["within_1_spread_percent"], 0),
        "two": fixed(content["within_2_spreads_percent"], 0),
        "one_without": fixed(content["within_1_spread_percent_without_extrapolation"], 0),
        "two_without": fixed(content["within_2_spreads_percent_without_extrapolation"], 0),
    }


def _draw_beyond(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    rows = [row for row in results["extrapolation"]["rows"] if "relative_ratio" in row]
    for row in rows:
        share = row["spread_ms"] / row["predicted_ms"]
        axes.plot(
            [row["beyond"]] * 2, [1 - share, 1 + share], color=GREY, alpha=0.45, linewidth=3, solid_capstyle="round"
        )
    for is_language, colour, label in (
        (True, COLOURS[0], "language models"),
        (False, COLOURS[1], "networks of the families"),
    ):
        shown = [row for row in rows if row["network"].startswith("lm") == is_language]
        beyond, ratios = [row["beyond"] for row in shown], [row["relative_ratio"] for row in shown]
        axes.plot(beyond, ratios, "o", color=colour, markersize=5, label=label)
    axes.plot([], [], color=GREY, alpha=0.45, linewidth=3, label="predicted spread")
    axes.axhline(1, color=GREY, linewidth=1.2)
    axes.set_xlabel("how far beyond the training's sizes (as the model counts it)")
    axes.set_ylabel("measured / predicted")
    axes.legend(loc="upper left")


BEYOND = Section(
    "Beyond the training sizes",
    ("extrapolation",),
    _beyond,
    Picture(
        "beyond-the-training-sizes",
        "Measured divided by predicted latency beyond the training's sizes, with the spread",
        _draw_beyond,
        (6.8, 3.8),
    ),
)
SECTIONS = (NETWORKS, PUBLISHED, BEYOND)
