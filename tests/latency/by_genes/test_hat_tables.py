"""The reader of HAT's published tables, and the quality of models fitted to them."""

import numpy as np
import pytest

from benchmarks.parts.published import LATENCY_TABLES, absent, hat_table
from nas_core.latency.by_genes.dataset import COLUMNS, load_latency_data
from nas_core.latency.by_genes.fit import fit
from nas_core.latency.by_genes.linear import LinearModel
from nas_core.space import get_space
from nas_core.space.hat import hat_draw

SEEDS = (0, 1, 2)


def write_csv(path, architectures, latency):
    lines = [",".join(COLUMNS)]
    for a, ms in zip(architectures, latency, strict=True):
        cross = np.mean([{-1: 1, 1: 2, 2: 3}[v] for v in a["decoder.arbitrary_cross"]])
        cells = [a["encoder.embed_dim"], a["encoder.layers"], np.mean(a["encoder.ffn_dim"])]
        cells += [np.mean(a["encoder.self_heads"]), a["decoder.embed_dim"], a["decoder.layers"]]
        cells += [np.mean(a[f"decoder.{gene}"]) for gene in ("ffn_dim", "self_heads", "cross_heads")]
        lines.append(",".join(map(str, [*cells, cross, 0.25 * ms, 0.75 * ms, 0.1, 0.1])))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def table(tmp_path):
    space = get_space("hat_wmt14_en_de")
    architectures = [hat_draw(space, update) for update in range(60)]
    latency = np.array([20.0 + 30 * a["decoder.layers"] for a in architectures])
    write_csv(tmp_path / "table.csv", architectures, latency)
    return tmp_path / "table.csv", space, architectures, latency


def test_averages_are_the_summary_encoding(table):
    path, space, architectures, latency = table
    data = load_latency_data(path)
    np.testing.assert_allclose(data.inputs, space.encode(architectures, "summary"), rtol=1e-6)
    np.testing.assert_allclose(data.latency_ms, latency)
    assert data.space == space and data.source == "summary"


def held_out(name):
    if reason := absent(LATENCY_TABLES):
        pytest.skip(reason)
    data = hat_table(name, get_space("hat_wmt14_en_de"))
    assert len(data) == 2000
    return [fit(data, lambda: LinearModel(data.space, data.source), 0.2, seed)[1] for seed in SEEDS]


def test_published_raspberry_pi_table():
    metrics = held_out("wmt14enfr_cpu_raspberrypi")
    assert np.mean([m.mape_percent for m in metrics]) <= 1.0
    assert np.mean([m.kendall_tau for m in metrics]) >= 0.965
    assert 80 <= np.mean([m.coverage_percent for m in metrics]) <= 97


def test_published_titan_xp_table():
    metrics = held_out("wmt14ende_gpu_titanxp")
    assert np.mean([m.mape_percent for m in metrics]) <= 6.0
    assert np.mean([m.r2 for m in metrics]) >= 0.94
