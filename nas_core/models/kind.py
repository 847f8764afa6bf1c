"""Interface and registry of network kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from torch import Tensor, nn

from nas_core.adapters import adapter_members
from nas_core.errors import ArchitectureError, ConfigError, SpaceError
from nas_core.graph.graph import Graph
from nas_core.models.genes import ChainGraphs
from nas_core.models.memory import BYTES
from nas_core.models.workload import OnePassWorkload, Workload, same_draws
from nas_core.options import config_from
from nas_core.registry import Registry
from nas_core.space import Architecture, SearchSpace

_PAIR = ("source_vocab", "target_vocab")


@dataclass(frozen=True)
class WorkloadPart:
    """A network of a latency workload, with inputs for export. It runs ``times`` times per pass."""

    name: str
    module: nn.Module
    inputs: tuple[Tensor, ...]
    times: int = 1


class ModelKind(ABC):
    """Base class of network kinds: how to validate, build, count and time the architectures of a search space.

    Subclasses are stateless. Arguments ``config`` are results of :meth:`config`.
    """

    name: str
    """Name in the registry, commands and files."""
    genes: tuple[str, ...]
    """Genes of each architecture. A space with these genes belongs to this kind."""
    params_description: str
    """Quantity that :meth:`params_m` counts, such as "parameters without embeddings"."""
    attributes: tuple[str, ...]
    """Column names of ``attributes`` in graphs."""
    workload_config: type[Any]
    """Settings of the latency workload: a frozen dataclass with defaults."""

    @property
    def vocabularies(self) -> tuple[str, ...]:
        """Names of the settings in ``workload_config`` that are vocabulary sizes."""
        return _PAIR if {*_PAIR} <= {field.name for field in fields(self.workload_config)} else ()

    @property
    @abstractmethod
    def operations(self) -> tuple[str, ...]:
        """Operation names in graphs, by index."""

    def check(self, space: SearchSpace) -> None:  # noqa: B027 - optional
        """Raise ``SpaceError`` or ``UnknownChoiceError`` for unsupported options of a space."""

    @abstractmethod
    def params_m(self, architecture: Architecture) -> float:
        """Return the number of parameters in millions, by formula.

        Raises:
            ArchitectureError: a gene is missing or has the wrong type.
        """

    @abstractmethod
    def flops_g(self, architecture: Architecture) -> float:
        """Return FLOPs of one pass in billions, by formula."""

    def weights(self, architecture: Architecture, config: Any) -> int:
        """Count all weights in the latency workload, including embeddings and classifier."""
        return round(1e6 * self.params_m(architecture))

    def activation_numel(self, architecture: Architecture, config: Any) -> int:
        """Count elements of activations at their peak in the latency workload."""
        return 0

    def cache(self, architecture: Architecture, config: Any) -> int:
        """Count elements of the decoding cache after the latency workload.

        Raises:
            ConfigError: the networks do not decode (default).
        """
        raise ConfigError(f"{self.name} networks have no decoding cache; use memory_mb instead of cache_mb")

    def memory_mb(self, architecture: Architecture, config: Any) -> float:
        """Return peak memory of weights and activations in fp32, in 10^6 bytes."""
        return BYTES * (self.weights(architecture, config) + self.activation_numel(architecture, config)) / 1e6

    def cache_mb(self, architecture: Architecture, config: Any) -> float:
        """Return the size of the decoding cache in fp32, in 10^6 bytes."""
        return BYTES * self.cache(architecture, config) / 1e6

    @abstractmethod
    def graph(self, architecture: Architecture) -> Graph:
        """Return the graph of an architecture for predictors. Different architectures have different graphs.

        Raises:
            ArchitectureError: the architecture does not belong to this kind.
        """

    @abstractmethod
    def build(self, space: SearchSpace, architecture: Architecture, config: Any) -> nn.Module:
        """Build the static network of an architecture, with random weights."""

    @abstractmethod
    def workload(self, space: SearchSpace, architecture: Architecture, config: Any, device: str = "cpu") -> Workload:
        """Return the latency workload of an architecture.

        Raises:
            ArchitectureError: the architecture is outside the space.
        """

    @abstractmethod
    def exports(self, space: SearchSpace, architecture: Architecture, config: Any) -> list[WorkloadPart]:
        """Return the networks of the latency workload for ONNX export."""

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Return the values of genes per layer, for reports: ``{"encoder": {gene: values}, ..}``."""
        return layered_genes(architecture)

    def config(self, settings: Mapping[str, Any]) -> Any:
        """Create settings of the latency workload, with defaults for missing ones."""
        return config_from(self.workload_config, settings, f"setting of the workload of {self.name} networks")

    def task_settings(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the workload settings in ``Supernet.task``, such as vocabulary sizes."""
        names = {field.name for field in fields(self.workload_config)}
        return {name: value for name, value in task.items() if name in names}

    def workload_to_dict(self, config: Any) -> dict[str, Any]:
        """Return workload settings and the kind's name as a dictionary. :func:`workload_of` is the inverse."""
        return {"kind": self.name, **asdict(config)}


class FormulaKind(ModelKind):
    """Network kind with a module of cost formulas, and graphs that are chains of sublayers."""

    costs: Any
    """Module with ``parameters(architecture)`` and ``flops(architecture)``."""
    graphs: ChainGraphs

    @property
    def operations(self) -> tuple[str, ...]:
        return self.graphs.operations()

    def params_m(self, architecture: Architecture) -> float:
        return float(self.costs.parameters(architecture) / 1e6)

    def flops_g(self, architecture: Architecture) -> float:
        return float(self.costs.flops(architecture) / 1e9)


class OnePassKind(ModelKind):
    """Network kind whose networks are timed and exported in one pass."""

    @abstractmethod
    def inputs(self, architecture: Architecture, config: Any) -> tuple[Tensor, ...]:
        """Return random inputs of the network that :meth:`build` returns."""

    def workload(self, space: SearchSpace, architecture: Architecture, config: Any, device: str = "cpu") -> Workload:
        architecture = space.validate(architecture)
        with same_draws():
            network, inputs = self.build(space, architecture, config), self.inputs(architecture, config)
        return OnePassWorkload(network, inputs, device)

    def exports(self, space: SearchSpace, architecture: Architecture, config: Any) -> list[WorkloadPart]:
        architecture = space.validate(architecture)
        network = self.build(space, architecture, config).eval()
        return [WorkloadPart("network", network, self.inputs(architecture, config))]


NETWORK_KINDS: Registry[ModelKind] = Registry(
    "kind of network",
    "nas_ext.network_kinds",
    {
        "translation": "nas_core.models.translation.kind:TRANSLATION",
        "image": "nas_core.models.image.kind:IMAGE",
        "language": "nas_core.models.language.kind:LANGUAGE",
        "masked_lm": "nas_core.models.masked_lm.kind:MASKED_LM",
        "bert": "nas_core.models.masked_lm.kind:BERT",
    },
    ModelKind,
    offered=lambda: adapter_members("network_kinds"),
)
"""Registry of network kinds. The entry point group ``nas_ext.network_kinds`` adds more."""


def fitting_kind(value: SearchSpace | Architecture) -> ModelKind | None:
    """Return the network kind that has the genes of a search space or architecture, or None.

    Raises:
        ConfigError: several kinds match.
        SpaceError: the kind does not support an option of the space.
    """
    names = _genes(value)
    kinds = [kind for _, kind in NETWORK_KINDS.items() if names.issuperset(kind.genes)]
    if len(kinds) > 1:
        raise ConfigError(
            f"{_called(value)} matches several kinds of network, {' and '.join(kind.name for kind in kinds)};"
            " add a gene to one kind that the other does not have"
        )
    if kinds and isinstance(value, SearchSpace):
        kinds[0].check(value)
    return kinds[0] if kinds else None


def kind_of(value: SearchSpace | Architecture) -> ModelKind:
    """Return the network kind that has the genes of a search space or architecture.

    Raises:
        SpaceError, ArchitectureError: no kind matches.
        ConfigError: several kinds match.
    """
    if kind := fitting_kind(value):
        return kind
    names = _genes(value)
    error = SpaceError if isinstance(value, SearchSpace) else ArchitectureError
    missing = {kind.name: [gene for gene in kind.genes if gene not in names] for _, kind in NETWORK_KINDS.items()}
    min_missing = min(map(len, missing.values()))
    needed = [
        f"{name} needs {', '.join(map(repr, genes))}" for name, genes in missing.items() if len(genes) == min_missing
    ]
    raise error(
        f"{_called(value)} matches no kind of network ({', '.join(missing)});"
        f" add the missing genes: {' and '.join(needed)}"
    )


def params_m(architecture: Architecture) -> float:
    """Return the number of parameters in millions, without embeddings.

    Image networks include a classifier of ten classes.
    """
    return kind_of(architecture).params_m(architecture)


def flops_g(architecture: Architecture) -> float:
    """Return FLOPs in billions for one sentence, without output projection, or for one image."""
    return kind_of(architecture).flops_g(architecture)


def workload_of(content: Mapping[str, Any]) -> tuple[ModelKind, Any] | None:
    """Return network kind and workload settings from :meth:`ModelKind.workload_to_dict`; None: unknown kind."""
    settings = dict(content)
    name = settings.pop("kind", None)
    if name not in NETWORK_KINDS.names():
        return None
    kind = NETWORK_KINDS.get(name)
    return kind, kind.config(settings)


def layered_genes(architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Return the genes with one value per layer: ``{side: {gene: values}}``.

    A side is ``encoder``, ``decoder`` or ``""``.

    Raises:
        ArchitectureError: no gene has one value per layer.
    """
    sides: dict[str, dict[str, tuple[Any, ...]]] = {}
    for name, gene in architecture.items():
        side, _, gene_name = name.rpartition(".")
        if isinstance(gene, tuple) and gene:
            sides.setdefault(side, {})[gene_name] = gene
    if not sides:
        raise ArchitectureError(
            f"architecture has genes {', '.join(architecture) or 'none'}; expected at least one gene with one value per"
            " layer"
        )
    return {side: sides[side] for side in sorted(sides, key=lambda side: (side != "encoder", side))}


def _genes(value: SearchSpace | Architecture) -> set[str]:
    return set(value) if isinstance(value, Architecture) else {*value.fixed, *(choice.name for choice in value.choices)}


def _called(value: SearchSpace | Architecture) -> str:
    return f"space {value.name!r}" if isinstance(value, SearchSpace) else "the architecture"
