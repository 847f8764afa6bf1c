"""Reports of searches that run here, over formulas: the genes that matter most."""

import pytest

from nas_core.report import write_report
from nas_core.report.run import finalists_table, read_run
from nas_core.report.search_page import importance
from nas_core.search import RandomConfig, RandomSearch, search
from nas_core.space import get_space


def searched(folder, strategy, objectives):
    """A search whose loss is the decoder's depth and a trifle, and whose cost is the feed-forward sizes."""
    names = [choice.name for choice in strategy.space.choices]

    def evaluate(architecture):
        features = dict(zip(names, strategy.space.encode(architecture)[0].tolist(), strict=True))
        trifle = int(architecture.key, 16) % 1000 / 1e6
        costs = {"params_m": features["encoder.ffn_dim"] + trifle, "latency_ms": 5.0}
        return {"loss": 2 - features["decoder.layers"] + trifle, **costs}

    search({"all": strategy}, evaluate, folder, objectives=objectives, finalists=4, progress=False)
    return read_run(folder)


def test_genes_that_matter_stand_out(tmp_path):
    space = get_space("hat_small")
    strategy = RandomSearch(space, config=RandomConfig(evaluations=80))
    result = importance(searched(tmp_path, strategy, ["loss", "params_m"]))
    assert list(result) == ["loss", "params_m"]
    assert all(set(values) == {choice.name for choice in space.choices} for values in result.values())
    for metric, gene in (("loss", "decoder.layers"), ("params_m", "encoder.ffn_dim")):
        ordered = sorted(result[metric], key=lambda name, metric=metric: -result[metric][name])
        assert ordered[0] == gene and result[metric][gene] > 0.7 and result[metric][ordered[1]] < 0.4
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "Genes that matter" in page and "random (seed 0)" in page and "<dt>finalists</dt><dd>4</dd>" in page


def test_costs_of_other_names_are_in_the_table(tmp_path):
    """Of limits by profilers of NNI, for instance."""
    space = get_space("hat_small")

    def evaluate(architecture):
        return {"loss": int(architecture.key, 16) % 97, "energy_mj": 1e6 + int(architecture.key, 16) % 89}

    strategy = RandomSearch(space, config=RandomConfig(evaluations=20))
    search({"all": strategy}, evaluate, tmp_path, objectives=["loss", "energy_mj"], progress=False)
    table = finalists_table(read_run(tmp_path))
    costs = [row["energy_mj"] for row in table.rows]
    assert "energy_mj" in [column.key for column in table.columns] and costs == sorted(costs) and len(costs) > 1
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "energy_mj" in (tmp_path / "finalists.csv").read_text(encoding="utf-8") and "Pareto front" in page


@pytest.mark.parametrize(("metrics", "costs"), [({"params_m": 1.5, "flops_g": 2.0}, ["params_m", "flops_g"]), ({}, [])])
def test_a_search_without_limits_is_drawn_by_the_costs_it_tells(tmp_path, metrics, costs):
    strategy = RandomSearch(get_space("hat_small"), config=RandomConfig(evaluations=12))
    search({"all": strategy}, lambda architecture: {"loss": 1.0, **metrics}, tmp_path, progress=False)
    assert read_run(tmp_path).costs == costs
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert page.count("Each dot is") == len(costs) and ("Pareto front" in page) == bool(costs)
    assert "predicted latency" not in page
