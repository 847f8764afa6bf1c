"""``nas-ext extract``: a subnet of a supernet as a static model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nas_core.errors import ConfigError
from nas_core.space import Architecture

__all__ = ["command"]


def command(
    checkpoint: Annotated[Path, typer.Option(help="Checkpoint of a trained supernet.")],
    arch: Annotated[str, typer.Option(help="Architecture file, or: smallest, largest.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    data: Annotated[str | None, typer.Option(help="Data folder, if it moved since training.")] = None,
) -> None:
    """Collapse the routers, slice the weights and save a static model of the subnet's own size."""
    from nas_core.supernet.host import open_supernet

    if out.resolve() in (checkpoint.resolve(), Path(arch).resolve()):
        raise ConfigError(f"--out {out} is one of the inputs; give another file")
    named = arch in ("smallest", "largest")
    architecture = None if named else Architecture.load(arch)
    supernet = open_supernet(checkpoint, data=data)
    if architecture is None:
        architecture = supernet.space.smallest() if arch == "smallest" else supernet.space.largest()
    architecture = supernet.space.validate(architecture)
    saved = supernet.extract(architecture, out)
    typer.echo(f"{out}: architecture {architecture.key}, {saved / 1e6:.2f} M parameters with embeddings")
