"""Adapters of host frameworks such as fairseq and timm, imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nas_core.registry import Registry


class Adapter:
    """Base class of adapters, which name the objects that a package adds for a framework as ``"module:object"``.

    Every attribute except ``name`` is optional. A package registers an instance of a subclass in the entry-point group
    ``nas_ext.hosts``. The module of the instance must not import the framework.
    """

    name: ClassVar[str]
    host: ClassVar[str] = ""
    """:class:`nas_core.supernet.host.Host` that opens checkpoints; empty if the adapter itself is a host"""
    commands: ClassVar[str] = ""
    """``typer.Typer`` of the command ``nas-ext NAME``, for the name of the adapter"""
    network_kinds: ClassVar[Mapping[str, str]] = {}
    """:class:`nas_core.models.kind.ModelKind` objects by name"""
    network_families: ClassVar[str] = ""
    """Sequence of :class:`nas_core.latency.by_graph.families.family.Family`: sources of networks to measure"""
    space_format: ClassVar[str] = ""
    """Function that writes a search space as text, for ``nas-ext lab space export --format NAME``"""


ADAPTERS: Registry[Adapter] = Registry("host", "nas_ext.hosts", {}, Adapter)


def adapter_members(attribute: str) -> dict[str, str]:
    """Return the merged mappings ``attribute``, such as ``network_kinds``, of all adapters."""
    return {name: target for _, adapter in ADAPTERS.items() for name, target in getattr(adapter, attribute).items()}


def adapter_parts(attribute: str) -> dict[str, str]:
    """Return ``attribute``, such as ``host``, of each adapter that sets it, by adapter name."""
    return {name: getattr(adapter, attribute) for name, adapter in ADAPTERS.items() if getattr(adapter, attribute)}


class _Fairseq(Adapter):
    name = "fairseq"
    host = "fairseq_ext.host:HOST"


class _Timm(Adapter):
    name = "timm"
    host = "timm_ext.host:HOST"
    network_families = "timm_ext.families:FAMILIES"


class _HuggingFace(Adapter):
    name = "huggingface"
    host = "hf_ext.host:HOST"
    network_kinds: ClassVar[Mapping[str, str]] = {"llama": "hf_ext.kind:LLAMA", "marian": "hf_ext.marian:MARIAN"}


class _NNI(Adapter):
    name = "nni"
    commands = "nni_ext.cli:app"
    space_format = "nni_ext.hpo.search_space:format_space"


# The packages of fairseq and timm import their framework, so their adapters are defined here.
FAIRSEQ, TIMM, HUGGING_FACE, NNI = _Fairseq(), _Timm(), _HuggingFace(), _NNI()
