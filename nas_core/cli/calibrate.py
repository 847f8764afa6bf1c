"""``nas-ext lab calibrate``: estimate standalone metrics from inherited ones and a few trained networks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nas_core.errors import ConfigError
from nas_core.files.reading import file_digest
from nas_core.predictor.files import new_file

if TYPE_CHECKING:
    from nas_core.search.calibration.model import Calibration


def command(
    supernet: Annotated[
        list[Path], typer.Option(help="Checkpoint of a trained supernet; repeatable for supernets of the same space.")
    ],
    trained: Annotated[list[Path], typer.Option(help="Results of trained networks (.jsonl); repeatable.")],
    out: Annotated[Path, typer.Option(help="File to write, .safetensors.")],
    metric: Annotated[str, typer.Option(help="Metric in these results to estimate, such as test_bleu.")] = "loss",
    larger_is_better: Annotated[
        bool | None, typer.Option(help="Larger values of --metric are better; default: from its name.")
    ] = None,
    inherited: Annotated[str, typer.Option(help="Metric of the supernet's evaluation.")] = "loss",
    inherited_larger_is_better: Annotated[
        bool | None, typer.Option(help="Larger values of --inherited are better; default: from its name.")
    ] = None,
    test_set: Annotated[str | None, typer.Option(help="Required test set of all results.")] = None,
    data: Annotated[Path | None, typer.Option(help="Data folder; default: the supernet's training data.")] = None,
    valid_subset: Annotated[str, typer.Option(help="Split on which the supernet is evaluated.")] = "valid",
    valid_samples: Annotated[
        int | None, typer.Option(min=1, help="Number of sentences or images of the split; default: all.")
    ] = None,
    device: Annotated[str, typer.Option(help="Device of the evaluations: cpu, cuda, cuda:1.")] = "cpu",
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Fit estimates of standalone metrics from inherited ones and a few trained networks, for 'nas-ext search'."""
    from nas_core.search.calibration.files import evaluation_settings, read_trained, save_calibration
    from nas_core.search.calibration.model import Calibration, inherited_value
    from nas_core.supernet.host import open_supernet

    new_file(out, force, [*supernet, *trained], [".safetensors"])
    if valid_subset.startswith("test"):
        raise ConfigError(
            f"--valid-subset is {valid_subset}; test data must not be used here, give a validation split such as valid"
        )
    settings = evaluation_settings(data, valid_subset, valid_samples)
    fingerprints = [file_digest(path) for path in supernet]
    if len(set(fingerprints)) < len(fingerprints):
        raise ConfigError(
            f"two of the supernets {', '.join(map(str, supernet))} are the same file or copies; give each supernet once"
        )
    opened = [open_supernet(path, **settings, device=device) for path in supernet]
    space = opened[0].space
    for path, member in zip(supernet, opened, strict=True):
        if member.space != space:
            raise ConfigError(
                f"{path} has search space {member.space.name!r}, but {supernet[0]} has {space.name!r}; give supernets"
                " of the same space"
            )
    results = read_trained(trained, space, metric, test_set)
    info = {"supernets": fingerprints, "settings": settings, "test_set": results.test_set}
    calibration = Calibration(space, metric, larger_is_better, inherited, inherited_larger_is_better, info)
    calibration.require_enough(len(results.architectures))  # before anything is evaluated
    metrics = [
        [inherited_value(member.evaluate(network), inherited) for member in opened] for network in results.architectures
    ]
    calibration.fit(results.architectures, metrics, results.standalone)
    save_calibration(calibration, out)
    typer.echo("\n".join([*_summary(calibration), str(out)]))


def _summary(calibration: Calibration) -> list[str]:
    direction = "larger" if calibration.larger else "smaller"
    lines = [f"{len(calibration.trained)} trained networks, {direction} {calibration.metric} is better"]
    if len(calibration.trained) > calibration.min_networks:
        quality = calibration.quality()
        lines.append(
            f"leave-one-out: mean error {quality.error:.4g}, Kendall's tau {quality.tau:.2f} (inherited"
            f" {calibration.inherited_metric} alone {quality.inherited_tau:.2f}), {quality.within_one:.0%} within one"
            f" standard deviation (expected 68%), {quality.within_two:.0%} within two"
        )
    return [*lines, "shares: " + ", ".join(f"{name} {share:.2f}" for name, share in calibration.shares.items())]
