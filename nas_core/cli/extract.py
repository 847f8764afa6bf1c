"""``nas-ext extract``: a subnet of a supernet as a static model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nas_core.errors import ConfigError
from nas_core.files.reading import real_path
from nas_core.space import Architecture


def command(
    checkpoint: Annotated[Path, typer.Option(help="Checkpoint of a trained supernet.")],
    arch: Annotated[str, typer.Option(help="Architecture file, or: smallest, largest.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    data: Annotated[str | None, typer.Option(help="Data folder, if it moved since training.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="As a model of the host's own, which needs nothing of this project.")
    ] = False,
    hugging_face: Annotated[
        bool, typer.Option("--hugging-face", help="As a folder in the layout of Hugging Face's BERT.")
    ] = False,
) -> None:
    """Collapse the routers, slice the weights and save a static model of the subnet's own size."""
    from nas_core.supernet.host import open_supernet

    if plain and hugging_face:
        raise ConfigError("--plain and --hugging-face are two formats; give one of them")
    if real_path(out) in (real_path(checkpoint), real_path(arch)):
        raise ConfigError(f"--out {out} is one of the inputs; give another file")
    named = arch in ("smallest", "largest")
    architecture = None if named else Architecture.load(arch)
    supernet = open_supernet(checkpoint, data=data)
    if architecture is None:
        architecture = supernet.space.smallest() if arch == "smallest" else supernet.space.largest()
    architecture = supernet.space.validate(architecture)
    extract = supernet.extract_bert if hugging_face else supernet.extract_plain if plain else supernet.extract
    saved = extract(architecture, out)
    typer.echo(f"{out}: architecture {architecture.key}, {saved / 1e6:.2f} M parameters with embeddings")
