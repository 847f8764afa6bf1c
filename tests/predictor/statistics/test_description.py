"""Statistics of described graphs: their groups, other tables of operations, files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nas_core.graph import GraphError, Operation, described, nasbench201_graphs
from nas_core.predictor.statistics.description import LAST, Description
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.statistics.operation_features import FEATURES

CELLS = nasbench201_graphs(np.random.default_rng(0).integers(0, 5, (60, 6)))
BARE = replace(CELLS, operations=None)
GOOD = np.array([float((graph.ops == 2).sum() - (graph.ops == 3).sum()) for graph in CELLS])


def test_groups_of_columns() -> None:
    description, bare = Description.of(CELLS), Description.of(BARE)
    assert description.groups == (range(len(FEATURES)), range(LAST)) and bare.groups == (range(LAST),)
    assert len(description) == len(bare) + len(FEATURES)
    assert np.array_equal(description.describe(CELLS)[:, len(FEATURES) :], bare.describe(BARE))


def test_parts_of_described_graphs() -> None:
    model = StatisticsModel.fit(CELLS, GOOD, 4, 2, seed=0)
    assert model.parts == ("described processes", "processes", "trees")
    rows = model.predict(CELLS)
    assert rows.shape == (3, 60) and model.predict(CELLS, apart=True).shape == (6, 60)
    assert all(np.corrcoef(row, GOOD)[0, 1] > 0.9 for row in rows)
    first, last = model.columns[0].numpy(), model.columns[-1].numpy()
    assert first.max() < len(FEATURES) <= last.max()
    assert StatisticsModel.fit(BARE, GOOD, 4, 2, seed=0).parts == ("processes", "trees")
    assert StatisticsModel.fit(CELLS, GOOD, 1, 0, seed=0).parts == ("processes",)


def test_graphs_without_a_word_mean_what_the_training_graphs_meant() -> None:
    model = StatisticsModel.fit(CELLS, GOOD, 2, 1, seed=0)
    assert np.array_equal(model.predict(BARE), model.predict(CELLS))
    others = [*(CELLS.operations or ())]
    others[1], others[2] = others[2], others[1]
    with pytest.raises(GraphError, match=r"operation 1 of these graphs is Operation\(.*learned from Operation\("):
        model.predict(described(CELLS, others))
    unknown = replace(BARE, ops=np.where(BARE.ops == 1, 9, BARE.ops).astype(np.int16))
    assert np.isfinite(model.predict(unknown)).all()


def test_a_description_comes_back_from_its_tensors() -> None:
    table = [Operation("end"), Operation("convolution", 3, 2, 2, 0.5, 6.0, 0, 2), Operation("pooling", 5, average=True)]
    graphs = described(replace(BARE, ops=(BARE.ops % 3).astype(np.int16)), table)
    description = Description.of(graphs)
    found = Description.from_tensors(description.to_tensors())
    assert found.operations == tuple(table)
    assert np.array_equal(found.describe(graphs), description.describe(graphs))
