"""``nas-ext elastic``: convert a trained network to a supernet."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import typer

from nas_core.errors import ConfigError
from nas_core.files.reading import real_path


def command(
    checkpoint: Annotated[Path, typer.Option(help="Trained checkpoint of fairseq or timm, or a Hugging Face folder.")],
    out: Annotated[Path, typer.Option(help="Checkpoint of the supernet to write; it must not exist.")],
    space: Annotated[
        str,
        typer.Option(
            help="auto: sizes up to those of the trained network; auto:layers,ffn_dim: only these sizes; attention:"
            " only kinds of attention; or a space whose largest network has the trained sizes."
        ),
    ] = "auto",
    uniform: Annotated[
        bool | None,
        typer.Option(
            "--uniform/--no-uniform",
            help="Equal sizes in all layers of a network, or sizes of each layer; for Hugging Face folders with --space"
            " auto. Default: equal.",
        ),
    ] = None,
    importance: Annotated[
        str | None,
        typer.Option(
            help="Criterion that sorts heads, hidden units and channels: activation, weight or none;"
            " default: activation with --calibration-batches, otherwise weight."
        ),
    ] = None,
    calibration_batches: Annotated[int, typer.Option(help="Number of data batches for importance.")] = 0,
    attention: Annotated[
        str, typer.Option(help="Kinds of attention in the search space, such as softmax,linear.")
    ] = "softmax",
    fit: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of updates that fit other kinds of attention to the trained one, on the calibration batches; 0"
            " copies the weights.",
        ),
    ] = None,
    space_out: Annotated[
        Path | None, typer.Option(help="YAML file for the search space, for commands with --space.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Data folder; default: that of the training, if the checkpoint names it.")
    ] = None,
    device: Annotated[str, typer.Option(help="Device to compute on.")] = "cpu",
) -> None:
    """Convert a trained network to a supernet with this network as the largest subnet.

    Heads, hidden units, channels and layers are sorted, so that smaller subnets keep the most important ones.
    """
    from nas_core.models.kind import kind_of
    from nas_core.space import save_space
    from nas_core.supernet.elastic.attention import FitConfig
    from nas_core.supernet.elastic.conversion import check_output, check_settings, convert
    from nas_core.supernet.elastic.space_spec import check_kinds
    from nas_core.supernet.host import open_trained

    criterion = importance or ("activation" if calibration_batches else "weight")
    kinds = tuple(kind.strip() for kind in attention.split(",") if kind.strip())
    check_kinds(kinds, space)
    fit_steps = FitConfig().steps if fit is None else fit
    check_settings(criterion, calibration_batches, fit_steps if len(kinds) > 1 else 0)
    if space_out and real_path(space_out) == real_path(out):
        raise ConfigError(f"--out and --space-out are both {out}; give different files")
    check_output(out, "--out")
    if space_out:
        check_output(space_out, "--space-out")
    start_time = time.perf_counter()
    options = {} if uniform is None else {"uniform": uniform}
    trained = open_trained(
        checkpoint,
        data=data,
        space=space,
        attention=kinds,
        calibration_batches=calibration_batches,
        device=device,
        **options,
    )
    conversion = convert(
        trained, out, importance_by=criterion, calibration_batches=calibration_batches, fit_steps=fit_steps
    )
    seconds = time.perf_counter() - start_time
    if space_out:
        save_space(trained.space, space_out)
    result, kind = trained.space, kind_of(trained.space)
    smallest, largest = (kind.params_m(end) for end in (result.smallest(), result.largest()))
    count = result.cardinality()
    size = str(count) if count < 10**6 else f"10^{math.log10(count):.1f}"
    typer.echo(f"{out}: {size} architectures, {smallest:.2f} to {largest:.2f} M {kind.params_description}")
    if conversion.sorted_axes:
        batches = f" on {conversion.batches} batches" * bool(conversion.batches)
        typer.echo(
            f"{conversion.sorted_axes} dimensions (heads, hidden units, channels) sorted by {criterion}{batches}"
        )
    for fitted in conversion.fitted:
        typer.echo(
            f"{fitted.gene} of layer {fitted.layer + 1}, {fitted.kind}: relative squared error {fitted.final:.1%} after"
            f" fitting, {fitted.before:.1%} with copied weights"
        )
    for side, order in conversion.layer_order.items():
        min_layers = min(result.choice(f"{side}.layers" if side else "layers").options[0])
        removed = ", ".join(str(layer + 1) for layer in reversed(order[int(min_layers) :]))
        typer.echo(f"{f'{side} ' if side else ''}layers in the order of removal: {removed}")
    typer.echo(
        f"largest network: its outputs differ from the trained model's by at most {conversion.difference:.1e} of the"
        " largest output"
    )
    typer.echo(f"{seconds:.1f} s")
