"""timm's networks by name, for data sets of published latencies."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import timm
import torch
from timm.utils import reparameterize_model
from torch import nn

from nas_core.latency.by_graph.published.collect import NetworkSource
from nas_core.latency.by_graph.published.export import NamedNetwork, exporting

_ROUNDED_M = 0.0051
"""Tolerance for numbers of parameters in millions, which are published with two decimals."""


def open_exporter(**limits: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that exports timm's networks; for ``limits`` see
    :func:`nas_core.latency.by_graph.published.export.exporting`."""
    return exporting(named_network, **limits)


def named_network(model: str, img_size: int) -> NamedNetwork | None:
    """Return family and constructor of a timm model for square images of ``img_size`` pixels; None if unknown."""
    if not timm.is_model(model):  # names that timm would download are none
        return None

    def make(params_m: float | None) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about renamed models
            network = _created(model, img_size)
            if params_m is not None and abs(_millions(network) - params_m) > _ROUNDED_M:
                with contextlib.suppress(Exception):  # made for trained weights, it may fail on these
                    # timm measures some networks with their parallel branches fused.
                    fused = reparameterize_model(_created(model, img_size), inplace=True)
                    network = min(network, fused, key=lambda candidate: abs(_millions(candidate) - params_m))
        channels = network.default_cfg.get("input_size", (3,))[0]
        return network.eval(), (torch.randn(1, channels, img_size, img_size),)

    return NamedNetwork(timm.model_entrypoint(model).__module__.rpartition(".")[2], make)


def _created(model: str, img_size: int) -> nn.Module:
    network = timm.create_model(model)
    if {img_size} != set(network.default_cfg.get("input_size", (3, img_size))[1:]):
        with contextlib.suppress(TypeError):  # it takes images of any size
            network = timm.create_model(model, img_size=img_size)
    return network.eval()


def _millions(network: nn.Module) -> float:
    return sum(param.numel() for param in network.parameters()) / 1e6


NETWORKS = NetworkSource("timm", str(timm.__version__), open_exporter)
