"""``nas-ext extract``: save a subnet of a supernet as a static model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nas_core.errors import ConfigError
from nas_core.files.reading import real_path


def command(
    checkpoint: Annotated[Path, typer.Option(help="Checkpoint of a trained supernet.")],
    arch: Annotated[str, typer.Option(help="Architecture file, or: smallest, largest.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    data: Annotated[str | None, typer.Option(help="Data folder, if it moved since training.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Save a model of the host framework, which does not need nas-ext.")
    ] = False,
    hugging_face: Annotated[
        bool, typer.Option("--hugging-face", help="Save a folder in the format of Hugging Face's BERT.")
    ] = False,
) -> None:
    """Save a subnet as a static model of its own size: mix the experts, slice the weights."""
    from nas_core.search.finalists import load_architecture
    from nas_core.supernet.host import open_supernet

    if plain and hugging_face:
        raise ConfigError("--plain and --hugging-face exclude each other; give one of them")
    if real_path(out) in (real_path(checkpoint), real_path(arch)):
        raise ConfigError(f"--out {out} is one of the inputs; give another file")
    named = arch in ("smallest", "largest")
    architecture = None if named else load_architecture(Path(arch))
    supernet = open_supernet(checkpoint, data=data)
    if architecture is None:
        architecture = supernet.space.smallest() if arch == "smallest" else supernet.space.largest()
    architecture = supernet.space.validate(architecture)
    extract = supernet.extract_bert if hugging_face else supernet.extract_plain if plain else supernet.extract
    saved = extract(architecture, out)
    typer.echo(f"{out}: architecture {architecture.key}, {saved / 1e6:.2f} M parameters with embeddings")
