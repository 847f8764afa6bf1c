"""Means over seeds of the compression benchmark."""

from __future__ import annotations

from benchmarks.supernet.compress_trained import means


def test_means_are_over_the_seeds_of_a_method_and_limit() -> None:
    key = {"task": "image", "share": 0.5, "updates": 300}
    rows = [
        {**key, "method": "a", "seed": seed, "latency": 0.4, "network": "3 layers", "top1": 50.0 + seed}
        for seed in (1, 2, 3)
    ]
    rows.append({**key, "share": 0.35, "method": "a", "seed": 1, "latency": None})
    mean, without = means(rows)
    assert (mean["limit"], mean["seeds"], mean["top1"]) == ("50%", 3, 52.0)
    assert without == {"task": "image", "limit": "35%", "method": "a", "updates": 300, "seeds": 1}
