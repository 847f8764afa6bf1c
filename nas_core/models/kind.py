"""Interface and registry of kinds of network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
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
class SpacePart:
    """A network that runs ``times`` times in a workload, with export inputs."""

    name: str
    module: nn.Module
    inputs: tuple[Tensor, ...]
    times: int = 1


class ModelKind(ABC):
    """A stateless kind of network; one-pass networks derive from :class:`OnePassKind`."""

    name: str
    """Name in the registry, commands and files."""
    genes: tuple[str, ...]
    """Genes of each architecture, searched or fixed; they identify the kind."""
    counted: str
    """Description of ``params_m``: "parameters without embeddings"."""
    attributes: tuple[str, ...]
    """Column names of the graphs' ``attributes``, if any."""
    workload_config: type[Any]
    """Settings of the workload: a frozen dataclass of numbers or texts with defaults."""

    @property
    def vocabularies(self) -> tuple[str, ...]:
        """Workload settings that are vocabulary sizes: of source and target, or one."""
        return _PAIR if {*_PAIR} <= {field.name for field in fields(self.workload_config)} else ()

    @property
    @abstractmethod
    def operations(self) -> tuple[str, ...]:
        """Operation names of ``graph``, by index."""

    def operations_of(self, space: SearchSpace) -> int:
        """Return the number of leading operations that a space's graphs use; by default all."""
        return len(self.operations)

    def check(self, space: SearchSpace) -> None:  # noqa: B027 - optional
        """Raise ``SpaceError`` or ``UnknownChoiceError`` for unsupported options of a space with all ``genes``."""

    @abstractmethod
    def params_m(self, architecture: Architecture) -> float:
        """Count parameters by formula, in millions.

        Raises:
            ArchitectureError: a gene is missing or has another type.
        """

    @abstractmethod
    def flops_g(self, architecture: Architecture) -> float:
        """Count FLOPs of one pass by formula, in billions; errors as of :meth:`params_m`."""

    def weights(self, architecture: Architecture, config: Any) -> int:
        """Count all weights of the workload's network, with embeddings and classifier; default :meth:`params_m`."""
        return round(1e6 * self.params_m(architecture))

    def live(self, architecture: Architecture, config: Any) -> int:
        """Count the workload's peak elements without weights; by default 0."""
        return 0

    def cache(self, architecture: Architecture, config: Any) -> int:
        """Count elements of the decoding cache after the workload's last step.

        Raises:
            ConfigError: the networks do not decode (default).
        """
        raise ConfigError(f"{self.name} networks do not decode and have no cache; limit memory_mb instead")

    def memory_mb(self, architecture: Architecture, config: Any) -> float:
        """Return peak memory in fp32, in 10^6 bytes: weights and :meth:`live`."""
        return BYTES * (self.weights(architecture, config) + self.live(architecture, config)) / 1e6

    def cache_mb(self, architecture: Architecture, config: Any) -> float:
        """Return the decoding cache in fp32, in 10^6 bytes; errors as of :meth:`cache`."""
        return BYTES * self.cache(architecture, config) / 1e6

    @abstractmethod
    def graph(self, architecture: Architecture) -> Graph:
        """Return the graph for NN-Former; different architectures have different graphs.

        Raises:
            ArchitectureError: not an architecture of this kind.
        """

    @abstractmethod
    def build(self, space: SearchSpace, architecture: Architecture, config: Any) -> nn.Module:
        """Build an architecture's static network with random weights."""

    @abstractmethod
    def workload(self, space: SearchSpace, architecture: Architecture, config: Any, device: str = "cpu") -> Workload:
        """Return the workload whose time is the architecture's latency.

        Raises:
            ArchitectureError: it is outside the space.
        """

    @abstractmethod
    def parts(self, space: SearchSpace, architecture: Architecture, config: Any) -> list[SpacePart]:
        """Return the workload's networks for ONNX export; errors as of :meth:`workload`."""

    def training_pass(
        self, space: SearchSpace, architecture: Architecture, config: Any, batch: int
    ) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """Return a static network and ``batch`` training inputs, for zero-cost proxies.

        The module's only or last output is logits ``(B, .., classes)``.

        Raises:
            ConfigError: the kind has no training pass (default).
            ArchitectureError: it is outside the space.
        """
        raise ConfigError(
            f"{self.name} networks define no training pass; implement training_pass of their kind for proxies"
        )

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Return side -> gene -> a value per layer, for reports; errors as of :func:`layered_genes`."""
        return layered_genes(architecture)

    def config(self, settings: Mapping[str, Any]) -> Any:
        """Return workload settings, with defaults for missing ones.

        Raises:
            UnknownChoiceError: an unknown setting.
            ConfigError: a value of another type.
        """
        return config_from(self.workload_config, settings, f"setting of the workload of {self.name} networks")

    def of_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the workload settings in a supernet's task, such as vocabulary sizes."""
        names = {field.name for field in fields(self.workload_config)}
        return {name: value for name, value in task.items() if name in names}

    def described(self, config: Any) -> dict[str, Any]:
        """Return workload settings as plain data, with the kind's name; inverse of :func:`workload_of`."""
        return {"kind": self.name, **asdict(config)}


class FormulaKind(ModelKind):
    """A kind of the project, with a module of formulas and a chain of sublayers as graph."""

    costs: Any
    """Module with ``parameters(architecture)`` and ``flops(architecture)``."""
    graphs: ChainGraphs

    @property
    def operations(self) -> tuple[str, ...]:
        return self.graphs.operations()

    def operations_of(self, space: SearchSpace) -> int:
        return self.graphs.operations_of(space)

    def params_m(self, architecture: Architecture) -> float:
        return float(self.costs.parameters(architecture) / 1e6)

    def flops_g(self, architecture: Architecture) -> float:
        return float(self.costs.flops(architecture) / 1e9)


class OnePassKind(ModelKind):
    """A kind whose networks run, and are timed and exported, in one pass."""

    @abstractmethod
    def inputs(self, architecture: Architecture, config: Any) -> tuple[Tensor, ...]:
        """Return inputs of the network of :meth:`build`."""

    def workload(self, space: SearchSpace, architecture: Architecture, config: Any, device: str = "cpu") -> Workload:
        architecture = space.validate(architecture)
        with same_draws():
            network, inputs = self.build(space, architecture, config), self.inputs(architecture, config)
        return OnePassWorkload(network, inputs, device)

    def parts(self, space: SearchSpace, architecture: Architecture, config: Any) -> list[SpacePart]:
        architecture = space.validate(architecture)
        network = self.build(space, architecture, config).eval()
        return [SpacePart("network", network, self.inputs(architecture, config))]

    def training_pass(
        self, space: SearchSpace, architecture: Architecture, config: Any, batch: int
    ) -> tuple[nn.Module, tuple[Tensor, ...]]:
        architecture, config = space.validate(architecture), replace(config, batch=batch)
        return self.build(space, architecture, config), self.inputs(architecture, config)


KINDS: Registry[ModelKind] = Registry(
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
"""All kinds of network; the entry point group ``nas_ext.network_kinds`` adds more."""


def fitting_kind(value: SearchSpace | Architecture) -> ModelKind | None:
    """Return the kind with the genes of a space or architecture, or None; a space's options are validated.

    Raises:
        ConfigError: several kinds fit.
        SpaceError, UnknownChoiceError: an option that the kind cannot have.
    """
    names = _genes(value)
    kinds = [kind for _, kind in KINDS.items() if names.issuperset(kind.genes)]
    if len(kinds) > 1:
        raise ConfigError(
            f"{_called(value)} has all genes of several kinds of network, {' and '.join(kind.name for kind in kinds)};"
            " one of them must require a gene that the other lacks"
        )
    if kinds and isinstance(value, SearchSpace):
        kinds[0].check(value)
    return kinds[0] if kinds else None


def kind_of(value: SearchSpace | Architecture) -> ModelKind:
    """Return the kind with the genes of a space or architecture.

    Raises:
        SpaceError, ArchitectureError: no kind fits; the message names the nearest. Others as of :func:`fitting_kind`.
    """
    if kind := fitting_kind(value):
        return kind
    names = _genes(value)
    error = SpaceError if isinstance(value, SearchSpace) else ArchitectureError
    lacking = {kind.name: [gene for gene in kind.genes if gene not in names] for _, kind in KINDS.items()}
    fewest = min(map(len, lacking.values()))
    needed = [f"{name} needs {', '.join(map(repr, genes))}" for name, genes in lacking.items() if len(genes) == fewest]
    raise error(
        f"{_called(value)} fits no kind of network ({', '.join(lacking)});"
        f" of the nearest, {' and '.join(needed)}: add it"
    )


def params_m(architecture: Architecture) -> float:
    """Count parameters in millions: without embeddings, or with a classifier of ten classes; errors as of
    :func:`kind_of`."""
    return kind_of(architecture).params_m(architecture)


def flops_g(architecture: Architecture) -> float:
    """Count FLOPs in billions, of a sentence without output projection, or of an image; errors as of
    :func:`kind_of`."""
    return kind_of(architecture).flops_g(architecture)


def workload_of(described: Mapping[str, Any]) -> tuple[ModelKind, Any] | None:
    """Return kind and settings from :meth:`ModelKind.described`; None without a kind of network.

    Raises:
        ConfigError: unknown settings.
    """
    settings = dict(described)
    name = settings.pop("kind", None)
    if name not in KINDS.names():
        return None
    kind = KINDS.get(name)
    return kind, kind.config(settings)


def layered_genes(architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Return side (``encoder``, ``decoder`` or "") -> gene -> a value per layer.

    Raises:
        ArchitectureError: no gene has a value per layer.
    """
    sides: dict[str, dict[str, tuple[Any, ...]]] = {}
    for name, gene in architecture.items():
        side, _, gene_name = name.rpartition(".")
        if isinstance(gene, tuple) and gene:
            sides.setdefault(side, {})[gene_name] = gene
    if not sides:
        raise ArchitectureError(
            f"no gene of this architecture has a value per layer, it has {', '.join(architecture) or 'none'}; expected"
            " one with layers"
        )
    return {side: sides[side] for side in sorted(sides, key=lambda side: (side != "encoder", side))}


def _genes(value: SearchSpace | Architecture) -> set[str]:
    return set(value) if isinstance(value, Architecture) else {*value.fixed, *(choice.name for choice in value.choices)}


def _called(value: SearchSpace | Architecture) -> str:
    return f"space {value.name!r}" if isinstance(value, SearchSpace) else "the architecture"
