"""Kinds of network: what a kind says about itself, and of which kind a space or an architecture is.

Nobody else asks what a network is: measuring, predicting, limiting and reporting take the kind of a space and use what
it gives. A kind of another distribution is an entry point of the group ``nas_ext.network_kinds``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from torch import Tensor, nn

from nas_core.errors import ArchitectureError, ConfigError, SpaceError
from nas_core.graph.graph import Graph
from nas_core.models.memory import BYTES
from nas_core.models.parts import SpacePart
from nas_core.models.workload import OnePassWorkload, Workload, same_draws
from nas_core.options import config_from
from nas_core.registry import Registry
from nas_core.space import Architecture, SearchSpace

_PAIR = ("source_vocab", "target_vocab")


class ModelKind(ABC):
    """One kind of network: all that the rest of the house knows of its networks. It has no state of its own.

    A kind whose networks run in one pass derives from :class:`OnePassKind` and has less to say.
    """

    name: str
    """The name in the registry, in commands, and in files of measurements and of predictors."""
    genes: tuple[str, ...]
    """Genes that each architecture has, searched or fixed; together they tell the kind from all others."""
    counted: str
    """What ``params_m`` counts, for people: "parameters without embeddings"."""
    attributes: tuple[str, ...]
    """Names of the columns of the graphs' ``attributes``; none where they have no attributes."""
    workload_config: type[Any]
    """Settings of the workload: a frozen dataclass whose fields are numbers or texts with defaults."""

    @property
    def vocabularies(self) -> tuple[str, ...]:
        """Settings of the workload that a folder of text tells, as sizes of its vocabularies: of source and target, or
        one; by default those of translation, where the workload has them."""
        return _PAIR if {*_PAIR} <= {field.name for field in fields(self.workload_config)} else ()

    @property
    @abstractmethod
    def operations(self) -> tuple[str, ...]:
        """Names of the operations of ``graph``, from index 0."""

    def operations_of(self, space: SearchSpace) -> int:
        """Count how many of ``operations``, from the first, the graphs of a space may have; by default all.

        A network that learns from the graphs of one space is made for so many: what other spaces choose, or other
        distributions add, changes nothing in it.
        """
        return len(self.operations)

    def check(self, space: SearchSpace) -> None:  # noqa: B027 - a kind whose genes take any option says nothing
        """Look at the options of a space that has all ``genes``; by default each is taken.

        Raises:
            SpaceError: an option that its networks cannot have. UnknownChoiceError: a name that does not exist.
        """

    @abstractmethod
    def params_m(self, architecture: Architecture) -> float:
        """Millions of parameters, by formula.

        Raises:
            ArchitectureError: a gene is missing or has no value of its type.
        """

    @abstractmethod
    def flops_g(self, architecture: Architecture) -> float:
        """Billions of FLOPs of one pass, by formula; errors as of :meth:`params_m`."""

    def weights(self, architecture: Architecture, config: Any) -> int:
        """How many numbers the network of the workload consists of, by formula, embeddings and classifier included; by
        default as many as :meth:`params_m` says. Errors as of that."""
        return round(1e6 * self.params_m(architecture))

    def live(self, architecture: Architecture, config: Any) -> int:
        """How many numbers are held at most beside the weights while the workload runs, by formula; by default none."""
        return 0

    def cache(self, architecture: Architecture, config: Any) -> int:
        """How many numbers decoding has kept after the workload's last step, by formula.

        Raises:
            ConfigError: its networks decode nothing, as by default.
        """
        raise ConfigError(f"{self.name} networks decode nothing and have no cache; limit their memory instead")

    def memory_mb(self, architecture: Architecture, config: Any) -> float:
        """The most that the workload holds in memory, in fp32: weights and what is live beside them, in 10^6 bytes.

        Args:
            config: the workload's settings, which give lengths, beam, batch and vocabularies.
        """
        return BYTES * (self.weights(architecture, config) + self.live(architecture, config)) / 1e6

    def cache_mb(self, architecture: Architecture, config: Any) -> float:
        """The size of the decoding cache after the workload's last step, in fp32, in 10^6 bytes; errors as of
        :meth:`cache`."""
        return BYTES * self.cache(architecture, config) / 1e6

    @abstractmethod
    def graph(self, architecture: Architecture) -> Graph:
        """The network as a graph for NN-Former; different architectures have different graphs.

        Raises:
            ArchitectureError: no architecture of this kind.
        """

    @abstractmethod
    def build(self, space: SearchSpace, architecture: Architecture, config: Any) -> nn.Module:
        """The static network of an architecture of the space, with random weights and for the workload's settings."""

    @abstractmethod
    def workload(self, space: SearchSpace, architecture: Architecture, config: Any, device: str = "cpu") -> Workload:
        """What is timed as the latency of an architecture of the space.

        Raises:
            ArchitectureError: it lies outside the space.
        """

    @abstractmethod
    def parts(self, space: SearchSpace, architecture: Architecture, config: Any) -> list[SpacePart]:
        """The networks of the workload with their inputs, each such that it can be exported to ONNX; errors as of
        :meth:`workload`."""

    def training_pass(
        self, space: SearchSpace, architecture: Architecture, config: Any, batch: int
    ) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """The static network with random weights, as one module that gives the logits of training ``(B, .., classes)``,
        alone or last, and ``batch`` inputs for it: what zero-cost proxies are computed on.

        Raises:
            ConfigError: this kind tells of no such pass, as by default. ArchitectureError: it lies outside the space.
        """
        raise ConfigError(f"{self.name} networks tell of no pass of training; proxies need training_pass of their kind")

    def layers(self, architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Side of the network -> gene -> a value per layer, as reports show them.

        Raises:
            ArchitectureError: no gene has a value per layer.
        """
        return layered_genes(architecture)

    def config(self, given: Mapping[str, Any]) -> Any:
        """Settings of the workload, from those that are given by name; the others have their defaults.

        Raises:
            UnknownChoiceError: a setting that this workload does not have. ConfigError: a value of another type.
        """
        return config_from(self.workload_config, given, f"setting of the workload of {self.name} networks")

    def of_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of the workload that a supernet's task gives, such as the sizes of its vocabularies."""
        names = {field.name for field in fields(self.workload_config)}
        return {name: value for name, value in task.items() if name in names}

    def described(self, config: Any) -> dict[str, Any]:
        """Settings of the workload as plain data, with the kind's name as ``kind``; see :func:`workload_of`."""
        return {"kind": self.name, **asdict(config)}


class OnePassKind(ModelKind):
    """A kind whose networks give their result in one pass, so that the network itself is timed and exported."""

    @abstractmethod
    def inputs(self, architecture: Architecture, config: Any) -> tuple[Tensor, ...]:
        """What :meth:`build`'s network is called with."""

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
        """By default what is timed, with so many inputs; for that the settings of the workload have a ``batch``."""
        if "batch" not in self.described(config):
            return super().training_pass(space, architecture, config, batch)
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
)


def fitting_kind(of: SearchSpace | Architecture) -> ModelKind | None:
    """The kind whose genes the space or the architecture has, if the options of a space suit it; None if there is none.

    Raises:
        ConfigError: several kinds claim it. SpaceError, UnknownChoiceError: it has options that the kind cannot have.
    """
    names = _genes(of)
    found = [kind for _, kind in KINDS.items() if names.issuperset(kind.genes)]
    if len(found) > 1:
        raise ConfigError(
            f"{_called(of)} has all genes of several kinds of network, {' and '.join(kind.name for kind in found)};"
            " one of them must ask for a gene that the other lacks"
        )
    if found and isinstance(of, SearchSpace):
        found[0].check(of)
    return found[0] if found else None


def kind_of(of: SearchSpace | Architecture) -> ModelKind:
    """The kind whose genes the space or the architecture has.

    Raises:
        SpaceError, ArchitectureError: no kind fits; the message names the nearest. Others as of :func:`fitting_kind`.
    """
    kind = fitting_kind(of)
    if kind is not None:
        return kind
    names = _genes(of)
    error = SpaceError if isinstance(of, SearchSpace) else ArchitectureError
    shares = {each: len(set(each.genes) - names) / len(each.genes) for _, each in KINDS.items()}
    nearest = [each for each, share in shares.items() if share == min(shares.values())]
    lacking = [(each.name, next(gene for gene in each.genes if gene not in names)) for each in nearest]
    told = ", and ".join(f"{name}, for which it has no gene {gene!r}" for name, gene in lacking)
    raise error(
        f"{_called(of)} fits no kind of network ({', '.join(KINDS.names())}); the nearest"
        f" {'is' if len(nearest) == 1 else 'are'} {told}"
    )


def workload_of(described: Mapping[str, Any]) -> tuple[ModelKind, Any] | None:
    """The kind and the settings of a workload that were written by :meth:`ModelKind.described`; None if they tell of
    no workload, as those of published tables and of predictions.

    Raises:
        ConfigError: settings that this kind's workload does not have.
    """
    settings = dict(described)
    name = settings.pop("kind", None)
    if name not in KINDS.names():
        return None
    kind = KINDS.get(name)
    return kind, kind.config(settings)


def layered_genes(architecture: Architecture) -> dict[str, dict[str, tuple[Any, ...]]]:
    """What stands before a gene's last dot (``encoder``, ``decoder``, "" without one) -> gene -> a value per layer.

    Raises:
        ArchitectureError: no gene has a value per layer.
    """
    sides: dict[str, dict[str, tuple[Any, ...]]] = {}
    for name, gene in architecture.items():
        side, _, what = name.rpartition(".")
        if isinstance(gene, tuple) and gene:
            sides.setdefault(side, {})[what] = gene
    if not sides:
        raise ArchitectureError(
            f"no gene of this architecture has a value per layer, it has {', '.join(architecture) or 'none'}; expected"
            " one with layers"
        )
    return {side: sides[side] for side in sorted(sides, key=lambda side: (side != "encoder", side))}


def _genes(of: SearchSpace | Architecture) -> set[str]:
    return set(of) if isinstance(of, Architecture) else {*of.fixed, *(choice.name for choice in of.choices)}


def _called(of: SearchSpace | Architecture) -> str:
    return f"space {of.name!r}" if isinstance(of, SearchSpace) else "the architecture"
