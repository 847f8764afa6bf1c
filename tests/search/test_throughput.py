"""Proposing and filtering is fast enough never to wait for; figures are in benchmarks/results."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.search.search_throughput import SPACE, latency_ms, one_by_one, vectorised


def test_both_ways_keep_about_the_same_share_and_rows_are_faster() -> None:
    parents = SPACE.sample_rows(np.random.default_rng(0), 25)
    limit = float(np.median(latency_ms(parents)))
    rates = []
    for _ in range(3):
        start = time.perf_counter()
        drawn, kept = vectorised(parents, limit, 10_000)
        rates.append(drawn / (time.perf_counter() - start))
    start = time.perf_counter()
    slow_drawn, slow_kept = one_by_one(parents, limit, 400)
    slow_rate = slow_drawn / (time.perf_counter() - start)
    assert abs(kept / drawn - slow_kept / slow_drawn) < 0.1
    assert max(rates) > 5 * slow_rate
