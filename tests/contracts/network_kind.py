"""What every kind of network must satisfy. A new one subclasses `NetworkKindContract` and names itself and a space."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nas_core.errors import ArchitectureError
from nas_core.latency import TimingConfig, measure
from nas_core.latency.by_graph.dataset.export import exported, input_names, outputs_of
from nas_core.models import NETWORK_KINDS, ModelKind, kind_of
from nas_core.models.kind import workload_of
from nas_core.predictor import reader_for
from nas_core.report.architecture import layers_table
from nas_core.space import Architecture, SearchSpace


class NetworkKindContract:
    """Subclass it with a name that starts with ``Test``."""

    name: str
    settings: dict[str, Any] = {}  # noqa: RUF012 - never changed
    """Settings of the workload with which it takes milliseconds."""

    def space(self) -> SearchSpace:
        """A space of small networks."""
        raise NotImplementedError

    def counted(self, network: nn.Module) -> int:
        """Parameters that ``params_m`` counts."""
        return sum(parameter.numel() for parameter in network.parameters())

    @property
    def kind(self) -> ModelKind:
        return NETWORK_KINDS.get(self.name)

    def architectures(self) -> list[Architecture]:
        space, rng = self.space(), np.random.default_rng(0)
        drawn = [space.smallest(), space.largest(), *(space.sample(rng) for _ in range(6))]
        return list(dict.fromkeys(drawn))

    def config(self) -> Any:
        return self.kind.config(self.settings)

    def test_its_spaces_fit_no_other_kind(self) -> None:
        space = self.space()
        assert self.kind.name == self.name and kind_of(space) is self.kind and kind_of(space.largest()) is self.kind
        genes = {*space.fixed, *(choice.name for choice in space.choices)}
        assert [name for name, kind in NETWORK_KINDS.items() if genes.issuperset(kind.genes)] == [self.name]

    def test_counted_parameters_equal_the_formula(self) -> None:
        for architecture in self.architectures():
            network = self.kind.build(self.space(), architecture, self.config())
            assert self.counted(network) == round(self.kind.params_m(architecture) * 1e6)
            assert 0 < self.kind.flops_g(architecture) < math.inf
        small, large = self.space().smallest(), self.space().largest()
        assert self.kind.params_m(small) < self.kind.params_m(large)
        assert self.kind.flops_g(small) < self.kind.flops_g(large)

    def test_graphs_tell_architectures_apart(self) -> None:
        reader = reader_for(self.name)
        graphs = [reader.read(architecture) for architecture in self.architectures()]
        assert len(set(graphs)) == len(graphs) > 1
        for architecture, graph in zip(self.architectures(), graphs, strict=True):
            assert self.kind.graph(Architecture.from_json({"genes": architecture.to_dict()})) == graph
            assert graph.ops.max() < len(self.kind.operations)
            columns = 0 if graph.attributes is None else graph.attributes.shape[1]
            assert columns == len(self.kind.attributes)
        with pytest.raises(ArchitectureError):
            self.kind.graph(Architecture({"other": 1}))

    def test_the_workload_is_measured(self) -> None:
        space, timing = self.space(), TimingConfig(warmup=0, repeats=2)
        before = torch.get_rng_state()
        small, large = (self.kind.workload(space, a, self.config()) for a in (space.smallest(), space.largest()))
        assert torch.equal(torch.get_rng_state(), before), "the caller's draws are untouched"
        result = measure(large, small, timing)
        assert result.components_ms and all(0 < ms < 60_000 for ms in result.components_ms.values())
        assert 0 < result.relative < math.inf
        with pytest.raises(ArchitectureError):
            self.kind.workload(space, Architecture({"other": 1}), self.config())

    def test_settings_of_the_workload_round_trip(self) -> None:
        for config in (self.config(), self.kind.config({})):
            assert dataclasses.is_dataclass(config)
            described = json.loads(json.dumps(self.kind.workload_to_dict(config)))
            assert described["kind"] == self.name and workload_of(described) == (self.kind, config)

    def test_exported_parts_compute_what_torch_does(self) -> None:
        pytest.importorskip("onnx", reason="onnx is not installed")
        runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        space = self.space()
        for architecture in (space.smallest(), space.largest()):
            parts = self.kind.exports(space, architecture, self.config())
            assert len({part.name for part in parts}) == len(parts) and all(part.times >= 1 for part in parts)
            for part in parts:
                with torch.no_grad():
                    expected = outputs_of(part.module(*part.inputs))
                content = io.BytesIO(exported(part.module, part.inputs)).getvalue()
                session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
                named = dict(zip(input_names(len(part.inputs)), (x.numpy() for x in part.inputs), strict=True))
                read = {node.name for node in session.get_inputs()}
                got = session.run(None, {name: value for name, value in named.items() if name in read})
                for mine, theirs in zip(expected, got, strict=True):
                    np.testing.assert_allclose(theirs, mine.numpy(), rtol=1e-4, atol=1e-4)

    def test_reports_show_its_layers(self) -> None:
        largest = self.space().largest()
        for genes in self.kind.layers(largest).values():
            assert len({len(values) for values in genes.values()}) == 1
        rows = layers_table(largest).rows
        assert len(rows) == sum(len(next(iter(genes.values()))) for genes in self.kind.layers(largest).values())
