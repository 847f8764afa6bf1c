"""``nas-ext lab space``: list, show and export search spaces."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from nas_core.adapters import adapter_parts
from nas_core.errors import ConfigError, unknown_choice
from nas_core.files.writing import write_atomic
from nas_core.registry import import_object
from nas_core.space import get_space, list_spaces
from nas_core.space.files import space_to_dict

MODELS = {
    "autoformer_s": ("autoformer_s", "mos_autoformer_s_supernet"),
    "bert_base": ("hat_bert", "mos_bert"),
    "bert_small": ("hat_bert_small", "mos_bert_small"),
    "cosformer_wmt14_en_de": ("cosformer_found_wmt14_en_de", "cosformer_wmt14_en_de"),
    "hat_iwslt14_de_en": ("hat_transformer_iwslt_de_en", "mos_transformer_iwslt_de_en"),
    "hat_small": ("hat_transformer_small", "mos_transformer_small"),
    "hat_wmt14_en_de": (
        "hat_transformer", "hat_transformer_wmt_en_de", "mos_transformer", "mos_transformer_wmt_en_de",
    ),
    "language_base": ("hat_transformer_lm", "mos_transformer_lm"),
    "language_small": ("hat_transformer_lm_small", "mos_transformer_lm_small"),
    "mformer_cifar10": ("mformer_cifar10", "mformer_cifar10_supernet"),
    "mformer_cifar10_small": (
        "mformer_cifar10_small", "mformer_cifar10_small_linear", "mformer_cifar10_small_softmax",
        "mformer_cifar10_small_supernet",
    ),
    "mformer_language_base": ("mformer_language_base", "mos_mformer_language_base"),
    "mformer_language_small": ("mformer_language_small", "mos_mformer_language_small"),
    "mformer_roberta_small": ("mformer_roberta_small",),
    "mformer_translation_small": ("mformer_translation_small", "mos_mformer_translation_small"),
    "mformer_wmt14_en_de": (
        "mformer_found_wmt14_en_de", "mformer_wmt14_en_de", "mos_mformer_wmt14_en_de", "transformer_found_wmt14_en_de",
    ),
    "roberta_base": ("hat_roberta", "mos_roberta"),
    "roberta_small": ("hat_roberta_small", "mos_roberta_small"),
    "supershaper_bert": ("supershaper_bert",),
    "supershaper_bert_small": ("supershaper_bert_small",),
    "vit_cifar10_small": ("mos_vit_cifar10_small_supernet", "vit_cifar10_small"),
}  # fmt: skip
"""Search space -> names of the models that use it by default, of timm for images, otherwise of fairseq (``--arch``)."""

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command("list")
def list_command() -> None:
    """List the search spaces with task, number of architectures, and models that use them by default."""
    from nas_core.models.kind import kind_of  # torch, which takes seconds to import

    row = "{:26}{:12}{:>16}  {}"
    typer.echo(row.format("space", "task", "architectures", "models of fairseq (--arch), for image of timm"))
    for name in list_spaces():
        space = get_space(name)
        count = space.cardinality()
        size = f"{count:,}" if count < 10**12 else f"{count:.1e}"
        typer.echo(row.format(name, kind_of(space).name, size, ", ".join(MODELS.get(name, "-"))))
    typer.echo("Every model takes any space of its task: --search-space NAME")


@app.command("export")
def export_command(
    name: Annotated[str, typer.Argument(help="Name of a space, see 'list', or a YAML file.")],
    format: Annotated[str, typer.Option("--format", help="yaml, or a format of an adapter, such as nni.")] = "yaml",
    out: Annotated[Path | None, typer.Option(help="File to write; default: print it.")] = None,
) -> None:
    """Write a search space as YAML or in the format of another program."""
    formats = {} if format == "yaml" else adapter_parts("space_format")
    if format != "yaml" and format not in formats:
        raise unknown_choice("format of a search space", format, ["yaml", *sorted(formats)])
    space = get_space(name)
    if format == "yaml":
        text = yaml.safe_dump(space_to_dict(space), sort_keys=False)
    else:
        text = import_object(f"format {format!r}", formats[format])(space)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomic(out, text)


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(help="Name of a space, see 'list', or a YAML file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the definition as JSON.")] = False,
) -> None:
    """Show the choices of a search space, its number of architectures, and the range of parameters if known."""
    space = get_space(name)
    if as_json:
        typer.echo(json.dumps(space_to_dict(space), indent=1))
        return
    count = space.cardinality()
    typer.echo(f"{space.name}: {count:,} architectures (10^{math.log10(count):.1f})")
    for choice in space.choices:
        equal_layers = all(row == choice.options[0] for row in choice.options)
        options = str(list(choice.options[0])) if equal_layers else " / ".join(str(list(row)) for row in choice.options)
        repeated = f"  for each of {choice.per}" if choice.per else ""
        typer.echo(f"  {choice.name:26} {options}{repeated}")
    for gene, value in space.fixed.items():
        typer.echo(f"  {gene:26} {value} (fixed)")
    from nas_core.models.kind import fitting_kind  # torch, which takes seconds to import

    if (kind := fitting_kind(space)) is not None:
        smallest, largest = kind.params_m(space.smallest()), kind.params_m(space.largest())
        typer.echo(f"  {kind.params_description}: {smallest:.2f} to {largest:.2f} M")
        config = kind.config({})
        ends = [kind.memory_mb(end, config) for end in (space.smallest(), space.largest())]
        typer.echo(f"  memory of a pass: {min(ends):.2f} to {max(ends):.2f} MB at {_settings(config)}")
        with suppress(ConfigError):  # what decodes nothing has no cache
            ends = [kind.cache_mb(end, config) for end in (space.smallest(), space.largest())]
            typer.echo(f"  decoding cache: {min(ends):.2f} to {max(ends):.2f} MB")


def _settings(config: Any) -> str:
    return ", ".join(f"{name} {value}" for name, value in asdict(config).items())
