"""Checkpoints as models that can be exported, whichever host wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from nas_core.errors import CheckpointError
from nas_core.export.parts import Exportable
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import host_of

__all__ = ["ExportableModel", "ExportingHost", "open_exportable"]


class ExportableModel(Protocol):
    """A supernet or a static network that was opened for export."""

    space: SearchSpace
    """The space of its architectures; one architecture if the network is static."""

    def exportable(self, architecture: Architecture) -> Exportable:
        """The subnet as parts of plain tensors."""
        ...


@runtime_checkable
class ExportingHost(Protocol):
    """A :class:`nas_core.supernet.host.Host` that also opens static networks and says what of them is exported."""

    def open_exportable(self, checkpoint: Path, **options: Any) -> ExportableModel:
        """Options as of ``Host.open``."""
        ...


def open_exportable(checkpoint: str | Path, **options: Any) -> ExportableModel:
    """Open a checkpoint with the host that recognises it.

    Raises:
        DataError: no such file. CheckpointError: no installed host knows it, or its host exports nothing.
        MissingHostError: no host is usable.
    """
    path = Path(checkpoint)
    host = host_of(path)
    if not isinstance(host, ExportingHost):
        raise CheckpointError(f"{path} is a checkpoint of host {host.name!r}, which exports no models")
    return host.open_exportable(path, **options)
