"""Zero-cost proxies: as published, and what they add to predictors."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.page.results import Results
from benchmarks.page.section import Section
from benchmarks.page.words import count, fixed, joined, table

__all__ = ["SECTIONS"]

TABLES = {
    "nasbench101/cifar10": "NAS-Bench-101",
    "nasbench201/cifar10": "NAS-Bench-201",
    "nasbench301/cifar10": "NAS-Bench-301",
    "transnas_macro/class_object": "TransNAS macro, objects",
    "transnas_macro/jigsaw": "TransNAS macro, jigsaw",
}


def _agreement(results: Results) -> Mapping[str, str]:
    content = results["proxies"]
    rows = content["rows"]
    equal = [f"`{row['proxy']}`" for row in rows if row["tau_of_mean"] >= content["aim"]]
    loose = [f"`{row['proxy']}`" for row in rows if row["tau_of_mean"] < content["aim"]]
    noisiest = min(rows, key=lambda row: row["tau_of_two_draws"] or 1.0)
    head = [
        "proxy", "tau with the published values", "of the mean of the draws", "between two draws of ours",
        "with accuracy", "published values with accuracy",
    ]  # fmt: skip
    names = ("tau", "tau_of_mean", "tau_of_two_draws", "tau_with_accuracy", "published_tau_with_accuracy")
    return {
        "cells": count(rows[0]["cells"]),
        "draws": count(rows[0]["draws"]),
        "batch": count(content["batch"]),
        "images": "CIFAR-10" if content["images"] == "cifar10" else "random numbers",
        "seconds": fixed(content["cpu_s_per_network"]),
        "enough": fixed(content["aim"], 2),
        "equal": joined(equal),
        "loose": joined(loose) if loose else "none",
        "noisiest": f"`{noisiest['proxy']}`",
        "gap": fixed(max((row["tau_of_two_draws"] or 0.0) - row["tau"] for row in rows), 3),
        "between": fixed(noisiest["tau_of_two_draws"], 2),
        "table": table(head, [[f"`{row['proxy']}`", *(fixed(row[name], 3) for name in names)] for row in rows]),
    }


def _inputs(results: Results) -> Mapping[str, str]:
    content = results["proxy_inputs"]
    rows = content["rows"]
    gains = [row["gain"] for row in rows]
    best = max(rows, key=lambda row: row["gain"])
    head = ["learned from", "cells", "draws", "graph alone", "with proxies", "gain", "least gain of a draw",
            "best proxy alone"]  # fmt: skip
    return {
        "settings": f" with {content['settings'].replace(',', ', ')}" if content["settings"] else "",
        "fit_s": fixed(content["fit_cpu_s"], 0),
        "least": fixed(min(gains), 3),
        "most": fixed(max(gains), 3),
        "where": TABLES[best["table"]],
        "size": count(best["size"]),
        "table": table(
            head,
            [
                [TABLES[row["table"]], count(row["size"]), count(row["draws"]), fixed(row["without"], 3),
                 fixed(row["with"], 3), fixed(row["gain"], 3), fixed(row["least_gain"], 3),
                 f"{fixed(row['tau_alone'], 3)} ({row['alone']})"]
                for row in rows
            ],
        ),
    }  # fmt: skip


SECTIONS = (
    Section("Zero-cost proxies", ("proxies",), _agreement),
    Section("Proxies beside graphs", ("proxy_inputs",), _inputs, optional=True),
)
