"""Adapters that build published networks by name."""

from __future__ import annotations

from typing import Protocol

from nas_core.errors import MissingHostError
from nas_core.jobs import Opener
from nas_core.supernet.host import each_host


class NetworkSource(Protocol):
    """What builds networks by name: a host has one as its attribute ``networks``."""

    name: str
    version: str
    """The release of the host's package, whose networks may change."""
    opener: Opener
    """A function of a module that can be imported, called once in a worker with the arguments of
    :func:`nas_core.latency.by_graph.published.exporting` but ``build``, whose result it returns."""


def network_source(name: str) -> NetworkSource:
    """The source of the host of that name.

    Raises:
        MissingHostError: the host is not installed. UnsupportedError: it builds no networks by name.
    """
    host = next((host for known, host in each_host() if known == name), None)
    if host is None:
        raise MissingHostError(f"no host {name!r} is registered; install nas-ext with 'pip install'")
    if isinstance(host, MissingHostError):
        raise host
    networks: NetworkSource = host.networks
    return networks
