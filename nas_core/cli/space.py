"""``nas-ext space``: list and show search spaces."""

from __future__ import annotations

import json
import math
from typing import Annotated

import typer

from nas_core.space import get_space, list_spaces, space_to_dict

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command("list")
def list_command() -> None:
    """The registered spaces and how many architectures each holds."""
    for name in list_spaces():
        typer.echo(f"{name:22} {get_space(name).cardinality():>28,}")


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(help="A space of 'list', or a YAML file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the definition as JSON.")] = False,
) -> None:
    """The choices of a space, its size, and the range of parameters where they can be counted."""
    space = get_space(name)
    if as_json:
        typer.echo(json.dumps(space_to_dict(space), indent=1))
        return
    count = space.cardinality()
    typer.echo(f"{space.name}: {count:,} architectures (10^{math.log10(count):.1f})")
    for choice in space.choices:
        same = all(row == choice.options[0] for row in choice.options)
        options = str(list(choice.options[0])) if same else " / ".join(str(list(row)) for row in choice.options)
        repeated = f"  for each of {choice.per}" if choice.per else ""
        typer.echo(f"  {choice.name:26} {options}{repeated}")
    for gene, value in space.fixed.items():
        typer.echo(f"  {gene:26} {value} (fixed)")
    if "decoder.arbitrary_cross" in space.largest():
        from nas_core.cost import params_m
        from nas_core.supernet.genes import check_translation_space

        check_translation_space(space)
        smallest, largest = params_m(space.smallest()), params_m(space.largest())
        typer.echo(f"  parameters without embeddings: {smallest:.2f} to {largest:.2f} M")
