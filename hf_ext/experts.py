"""Experts of the feed-forward layers of a supernet (Mixture-of-Supernets)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from safetensors import safe_open
from torch import Tensor, nn

from hf_ext.folder import DAMAGED, SETTINGS, reason
from nas_core.errors import CheckpointError
from nas_core.layers.mos import ROUTERS, MoSConfig, mix
from nas_core.models.static import encoding_size, router_encoding
from nas_core.random_streams import own_streams
from nas_core.space import Architecture, SearchSpace

_PREFIX = "experts."
"""Prefix of the names of tensors in a folder."""
_SCALE = 0.1
"""Standard deviation of the initial differences, relative to that of the trained weight."""


class Experts(nn.Module):
    """Differences of M experts from trained weights, mixed by a router that reads the architecture.

    The mean of the initial differences is 0, and routers mix evenly at first: subnets do not change.

    Args:
        weights: weights ``(O, I)`` and biases ``(O,)`` with a dimension along the hidden units, by name.
    """

    def __init__(self, weights: Mapping[str, Tensor], space: SearchSpace, config: MoSConfig) -> None:
        super().__init__()
        self.space, self.config, features = space, config, encoding_size(space, config)
        self.differences, self.routers = nn.ParameterDict(), nn.ModuleDict()
        with own_streams(0):
            for name, tensor in weights.items():
                trained = tensor.detach().cpu()
                noise = trained.new_empty(config.experts, *tensor.shape).normal_() * (_SCALE * trained.std())
                self.differences[_key(name)] = nn.Parameter(noise - noise.mean(0))
                router = ROUTERS[config.kind](features, config, len(tensor))
                nn.init.zeros_(router.out.weight)
                nn.init.zeros_(router.out.bias)
                self.routers[_layer(_key(name))] = router

    def forward(self, architecture: Architecture, weights: dict[str, Tensor], source: Callable[[str], str]) -> None:
        """Add mixed differences to slices of the trained weights.

        Args:
            source: function from a name in ``weights`` to the supernet's name.
        """
        encoding = router_encoding(self.space, architecture, self.config, next(self.parameters()).device)
        mixtures = dict[str, Tensor]()
        for name, tensor in weights.items():
            key = _key(source(name))
            if key not in self.differences:
                continue
            layer, differences = _layer(key), self.differences[key]
            if layer not in mixtures:
                mixtures[layer] = self.routers[layer](encoding, len(tensor))
            if tensor.ndim == 1:
                weights[name] = tensor + mix(differences[..., None], mixtures[layer], len(tensor), 1)[:, 0]
            else:
                weights[name] = tensor + mix(differences, mixtures[layer], *tensor.shape)


def _key(name: str) -> str:
    return name.replace(".", "/")


def _layer(key: str) -> str:
    return key.rpartition("/")[0]


def load_experts(folder: Path, experts: Experts | None) -> None:
    """Load the experts of a supernet's folder.

    Raises:
        CheckpointError: the weights have other experts than the settings.
    """
    expected, tensors = {} if experts is None else experts.state_dict(), {}
    try:
        for file in sorted(folder.glob("model*.safetensors")):
            with safe_open(file, "pt") as content:  # type: ignore[no-untyped-call]
                names = [name for name in content.keys() if name.startswith(_PREFIX)]  # noqa: SIM118
                tensors |= {name.removeprefix(_PREFIX): content.get_tensor(name) for name in names}
    except DAMAGED as error:
        raise CheckpointError(f"{folder} has damaged weights ({reason(error)}); give an undamaged copy") from None
    shapes, expected_shapes = ({n: t.shape for n, t in x.items()} for x in (tensors, expected))
    if different := sorted(n for n in shapes | expected_shapes if shapes.get(n) != expected_shapes.get(n)):
        raise CheckpointError(
            f"{folder} has other experts than its {SETTINGS} says, such as {_PREFIX}{different[0]}; give an undamaged"
            " copy"
        )
    if experts is not None:
        experts.load_state_dict(tensors)
