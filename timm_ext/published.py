"""timm's networks by name, for the graphs of latencies that timm has published."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nas_core.latency.by_graph.published import NamedNetwork, exporting

if TYPE_CHECKING:
    import torch
    from torch import nn

_ROUNDED_M = 0.0051
"""Published millions of parameters have two digits behind the point."""


def open_exporter(**limits: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """What makes graphs of timm's networks; arguments as of :func:`nas_core.latency.by_graph.published.exporting`."""
    import timm_ext  # noqa: F401  repairs the import of torchvision

    return exporting(named_network, **limits)


def named_network(model: str, img_size: int) -> NamedNetwork | None:
    """A model of timm's registry for square images of that size, without pretrained weights; its family is the module
    that has it: ``resnet`` for those of ``timm.models.resnet``."""
    import timm

    if not timm.is_model(model):  # nor is anything that timm would download
        return None

    def make(params_m: float | None) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        return _made(model, img_size, params_m)

    return NamedNetwork(timm.model_entrypoint(model).__module__.rpartition(".")[2], make)


def _made(model: str, img_size: int, params_m: float | None) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that names have changed
        network = _created(model, img_size)
        if params_m is not None and abs(_millions(network) - params_m) > _ROUNDED_M:
            fused = _fused(model, img_size)
            if fused is not None and abs(_millions(fused) - params_m) < abs(_millions(network) - params_m):
                network = fused
    channels = network.default_cfg.get("input_size", (3,))[0]
    return network.eval(), (torch.randn(1, channels, img_size, img_size),)


def _created(model: str, img_size: int) -> nn.Module:
    import timm

    network = timm.create_model(model)
    if {img_size} != set(network.default_cfg.get("input_size", (3, img_size))[1:]):
        with contextlib.suppress(TypeError):  # it takes images of any size
            network = timm.create_model(model, img_size=img_size)
    return network.eval()


def _fused(model: str, img_size: int) -> nn.Module | None:
    """The network with its parallel branches as one, as timm measures some; None where that fails."""
    from timm.utils import reparameterize_model

    try:
        return reparameterize_model(_created(model, img_size), inplace=True)
    except Exception:  # it was made for trained weights, not for these
        return None


def _millions(network: nn.Module) -> float:
    return sum(param.numel() for param in network.parameters()) / 1e6


class TimmNetworks:
    """timm as what builds networks by name; see :class:`nas_core.latency.by_graph.published.NetworkSource`."""

    name = "timm"
    opener = staticmethod(open_exporter)

    @property
    def version(self) -> str:
        """timm's."""
        import timm

        return str(timm.__version__)


NETWORKS = TimmNetworks()
