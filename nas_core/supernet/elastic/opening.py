"""Checkpoints as trained networks that can be taken over, whichever host wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from nas_core.errors import CheckpointError
from nas_core.supernet.elastic.take_over import Trained
from nas_core.supernet.host import host_of

__all__ = ["ElasticHost", "open_trained"]


@runtime_checkable
class ElasticHost(Protocol):
    """A :class:`nas_core.supernet.host.Host` whose own trained networks can become the largest subnet of a supernet."""

    def open_trained(self, checkpoint: Path, **options: Any) -> Trained:
        """Open a trained network; ``options`` are ``data`` (its folder, None: where it was), ``space`` (what
        :func:`nas_core.supernet.elastic.asked.made` takes, or a name or file), ``attention`` (kinds that each layer may
        choose from), ``calibrate`` (batches of data that will be asked for) and ``device``.

        Raises:
            CheckpointError: the file is damaged or of a network that has no elastic form. ConfigError: a part of it has
            none. SpaceError: the space does not contain it.
        """
        ...


def open_trained(checkpoint: str | Path, **options: Any) -> Trained:
    """Open a trained network with the host that recognises it.

    Args:
        options: as :meth:`ElasticHost.open_trained` takes them.

    Raises:
        DataError: no such file. CheckpointError: no installed host knows it, or its host takes over no networks.
        MissingHostError: no host is usable.
    """
    path = Path(checkpoint)
    host = host_of(path, "the checkpoint of a trained network")
    if not isinstance(host, ElasticHost):
        raise CheckpointError(f"{path} is a checkpoint of host {host.name!r}, which takes over no networks")
    return host.open_trained(path, **options)
