"""Proposing and filtering is fast enough never to wait for; figures are in benchmarks/results."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.search_throughput import AIM, SPACE, latency_ms, one_by_one, vectorised


def test_both_ways_keep_about_the_same_share_and_rows_reach_the_aim() -> None:
    parents = SPACE.sample_rows(np.random.default_rng(0), 25)
    limit = float(np.median(latency_ms(parents)))
    rates = []
    for _ in range(3):
        start = time.perf_counter()
        drawn, kept = vectorised(parents, limit, 10_000)
        rates.append(drawn / (time.perf_counter() - start))
    slow_drawn, slow_kept = one_by_one(parents, limit, 400)
    assert abs(kept / drawn - slow_kept / slow_drawn) < 0.1
    assert max(rates) > AIM
