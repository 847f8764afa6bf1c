"""Kinds of network whose formulas are the functions of three modules, as those of the house."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from nas_core.models.kind import ModelKind
from nas_core.models.workload import Workload
from nas_core.space import Architecture, SearchSpace

__all__ = ["FormulaKind", "Formulas"]


class _Costs(Protocol):
    def params_m(self, architecture: Architecture) -> float: ...
    def flops_g(self, architecture: Architecture) -> float: ...


class _Graphs(Protocol):
    def operations(self) -> tuple[str, ...]: ...
    def operations_of(self, space: SearchSpace) -> int: ...


class _Memory(Protocol):
    def weight_numbers(self, architecture: Architecture, config: Any) -> int: ...
    def live_numbers(self, architecture: Architecture, config: Any) -> int: ...


class Formulas(NamedTuple):
    """The modules ``costs``, ``graph`` and ``memory`` of a kind's folder."""

    costs: _Costs
    graph: _Graphs
    memory: _Memory


class FormulaKind(ModelKind):
    """A kind that says what it counts by three modules, and what is timed by one class."""

    formulas: Formulas
    """Those modules."""
    timed: type[Any]
    """The class of its workloads, made from space, architecture, settings and device."""

    @property
    def operations(self) -> tuple[str, ...]:
        return self.formulas.graph.operations()

    def operations_of(self, space: SearchSpace) -> int:
        return self.formulas.graph.operations_of(space)

    def params_m(self, architecture: Architecture) -> float:
        return self.formulas.costs.params_m(architecture)

    def flops_g(self, architecture: Architecture) -> float:
        return self.formulas.costs.flops_g(architecture)

    def weights(self, architecture: Architecture, config: Any) -> int:
        return self.formulas.memory.weight_numbers(architecture, config)

    def live(self, architecture: Architecture, config: Any) -> int:
        return self.formulas.memory.live_numbers(architecture, config)

    def workload(self, space: SearchSpace, architecture: Architecture, config: Any, device: str = "cpu") -> Workload:
        made: Workload = self.timed(space, architecture, config, device)
        return made
