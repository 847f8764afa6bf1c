"""``nas-ext export``: export a subnet as files that run without this project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nas_core.errors import ConfigError
from nas_core.space import Architecture, SearchSpace


def command(
    checkpoint: Annotated[
        Path, typer.Option(help="Extracted subnet, folder of transformers, or a supernet with --arch.")
    ],
    out: Annotated[Path, typer.Option(help="Output folder.")],
    to: Annotated[str, typer.Option(help="Format: onnx or torch-export.")] = "onnx",
    arch: Annotated[str | None, typer.Option(help="Architecture of a supernet: a file, smallest or largest.")] = None,
    data: Annotated[str | None, typer.Option(help="Data folder, if it moved since training.")] = None,
) -> None:
    """Export a subnet as ONNX or torch.export programs, run the files and compare the outputs with torch."""
    from nas_core.export import write_export
    from nas_core.export.folder import check_target
    from nas_core.search.finalists import load_architecture
    from nas_core.supernet.host import open_exportable

    check_target(out, to)
    requested = None if arch in (None, "smallest", "largest") else load_architecture(Path(str(arch)))
    model = open_exportable(checkpoint, data=data)
    architecture = model.space.validate(requested) if requested is not None else _named(model.space, arch, checkpoint)
    written = write_export(model.exportable(architecture), out, to)
    typer.echo(f"{out}: architecture {architecture.key}, {', '.join(written.files)}, {written.megabytes:.1f} MB")
    for name, difference in written.differences.items():
        typer.echo(f"{name}: at most {difference:.1e} from torch, relative to the scale of its tensors")


def _named(space: SearchSpace, arch: str | None, checkpoint: Path) -> Architecture:
    if arch is None and space.cardinality() > 1:
        raise ConfigError(
            f"{checkpoint} is a supernet; choose a subnet with --arch FILE, --arch smallest or --arch largest"
        )
    return space.smallest() if arch == "smallest" else space.largest()
