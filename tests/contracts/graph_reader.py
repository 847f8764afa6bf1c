"""What every reader of graphs must satisfy. A new reader subclasses `GraphReaderContract` and writes three members."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ArchitectureError, UnknownChoiceError
from nas_core.graph import Graph, GraphError
from nas_core.predictor import Reader, reader_for

Arguments = tuple[Any, ...]


class GraphReaderContract:
    """Subclass it with a name that starts with ``Test``."""

    name: str

    def inputs(self) -> Sequence[Arguments]:
        """Arguments of different architectures, two at least."""
        raise NotImplementedError

    def wrong(self) -> Mapping[str, Arguments]:
        """Return arguments that must be rejected, by a part of the error's message."""
        raise NotImplementedError

    @property
    def reader(self) -> Reader:
        return reader_for(self.name)

    def graphs(self) -> list[Graph]:
        return [self.reader.read(*arguments) for arguments in self.inputs()]

    def test_graphs_are_acyclic(self) -> None:
        for graph in self.graphs():
            ways = graph.adjacency.astype(np.int64)
            for _ in range(len(graph)):
                ways = (ways @ graph.adjacency > 0).astype(np.int64)
            assert not ways.any(), "a way longer than the graph"
            assert len(np.unique(graph.edges, axis=0)) == len(graph.edges)

    def test_operations_have_names_and_attributes_have_columns(self) -> None:
        assert len(set(self.reader.operations)) == len(self.reader.operations) <= 32
        for graph in self.graphs():
            assert graph.ops.max() < len(self.reader.operations)
            columns = 0 if graph.attributes is None else graph.attributes.shape[1]
            assert columns == len(self.reader.attributes)
            if graph.attributes is not None:
                assert graph.attributes.min() >= 0 and graph.attributes.max() < 10, "not normalised"

    def test_different_architectures_give_different_graphs(self) -> None:
        graphs = self.graphs()
        assert len(set(graphs)) == len(graphs) > 1

    def test_reading_is_deterministic_and_leaves_the_input_alone(self) -> None:
        for arguments in self.inputs():
            before = copy.deepcopy(arguments)
            first, second = self.reader.read(*arguments), self.reader.read(*before)
            assert (first, hash(first)) == (second, hash(second))
            assert json.dumps(arguments, default=_plain) == json.dumps(before, default=_plain)

    def test_json_and_pickle_round_trip(self) -> None:
        for graph in self.graphs():
            assert Graph.from_dict(json.loads(json.dumps(graph.to_dict()))) == graph
            assert pickle.loads(pickle.dumps(graph)) == graph

    def test_wrong_inputs_are_refused_in_one_line(self) -> None:
        assert self.wrong()
        for message, arguments in self.wrong().items():
            with pytest.raises((GraphError, UnknownChoiceError, ArchitectureError)) as caught:
                self.reader.read(*arguments)
            assert message in str(caught.value), str(caught.value)
            assert "\n" not in str(caught.value)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value.to_dict()
