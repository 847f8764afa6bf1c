"""Image supernets and static subnets with timm's interface.

Shapes: B batch, N tokens, C channels, K classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from timm.layers import to_2tuple
from timm.models._features import feature_take_indices  # noqa: PLC2701
from torch import Tensor, nn

from nas_core.errors import CheckpointError, ConfigError, UnknownChoiceError, unknown_choice
from nas_core.layers import MoSConfig
from nas_core.models.image.net import VisionConfig, VisionNet, VisionSubnet
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_from_dict, space_to_dict
from nas_core.supernet.holder import SubnetHolder

MISFITS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Exceptions that wrong model arguments of a damaged checkpoint may raise."""
PREPARED = ("mean", "std", "crop_pct", "crop_mode", "interpolation")
"""Entries of timm's data configuration that a checkpoint stores."""
_NO_ARGUMENTS = ("self", "space", "unknown", "__class__")


class VisionModel(SubnetHolder[VisionSubnet], nn.Module):
    """Image supernet, or a static network if the search space has one architecture.

    In training, each forward pass samples an architecture. In evaluation, the supernet runs :attr:`eval_architecture`,
    by default the largest. :meth:`use_architecture` selects an architecture in both modes. Arguments that are not
    listed are those of :class:`nas_core.models.image.VisionConfig`.

    Args:
        space: search space with the genes of :mod:`nas_core.space.image`.
        num_classes: number of classes K; 0: return features instead of logits.
        img_size: height and width in pixels.
        global_pool: ``avg``, ``max``, ``avgmax``, ``token``, or an empty string for features of every token.
        drop_rate: dropout after the embedding and each sublayer.
        attn_drop_rate: dropout on attention weights.
        act_drop_rate: dropout on hidden units of feed-forward layers.
        drop_path_rate: stochastic depth.
        mos: experts of the feed-forward layers: ``none``, ``layer`` or ``neuron``; for other ``mos_`` arguments see
            :class:`nas_core.layers.MoSConfig`.
        architecture_seed: seed of the sampled architectures.
        dynamic_img_size: accept images of other sizes and interpolate the positions.
        prepared: image preprocessing by timm's names (``mean``, ``std``, ..); default: that of the registered model.
    """

    def __init__(
        self,
        space: SearchSpace,
        num_classes: int = 10,
        in_chans: int = 3,
        img_size: int | Sequence[int] | None = None,
        global_pool: str = "avg",
        class_token: bool = True,
        drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        act_drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        mos: str = "none",
        mos_experts: int = 2,
        mos_router_hidden: int = 128,
        mos_router_layers: int = 2,
        architecture_seed: int = 1,
        dynamic_img_size: bool = True,
        activation: str = "relu",
        norm_eps: float = 1e-5,
        embedding_scale: float | None = None,
        norm_embedding: bool = False,
        norm_after_pool: bool = False,
        registers: int = 0,
        smooth_positions: bool = False,
        layer_order: Sequence[int] = (),
        prepared: Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name not in _NO_ARGUMENTS}
        for name in unknown:
            raise unknown_choice("argument of an image model", name, arguments)
        super().__init__()
        experts = MoSConfig(
            kind=mos, experts=mos_experts, router_hidden=mos_router_hidden, router_layers=mos_router_layers
        )
        self.arguments, self.is_supernet = arguments, space.cardinality() > 1
        config = VisionConfig(
            classes=num_classes,
            channels=in_chans,
            image_size=image_pair(img_size),
            class_token=class_token,
            pool=global_pool,
            dropout=drop_rate,
            attention_dropout=attn_drop_rate,
            activation_dropout=act_drop_rate,
            drop_path=drop_path_rate,
            activation=activation,
            norm_eps=norm_eps,
            embedding_scale=embedding_scale,
            norm_embedding=norm_embedding,
            norm_after_pool=norm_after_pool,
            registers=registers,
            smooth_positions=smooth_positions,
            layer_order=tuple(layer_order),
            mos=experts if self.is_supernet else MoSConfig(),
        )
        self.net = VisionNet(space, config)
        if prepared is not None:
            size = config.image_size or (space.largest().number("image_size"),) * 2
            plain = {name: tuple(value) if isinstance(value, list) else value for name, value in prepared.items()}
            self.pretrained_cfg = self.default_cfg = {**plain, "input_size": (in_chans, *size)}
        self.set_space(space, architecture_seed)
        if self.is_supernet:
            self.register_buffer("updates", torch.zeros((), dtype=torch.long))
            self._updates = 0  # the buffer's value, without a read from the device
            self.register_load_state_dict_post_hook(_count_loaded)
        self.in_chans, self.num_classes = in_chans, num_classes
        self.num_features = self.head_hidden_size = self.embed_dim = self.net.embed_dim
        self.feature_info = [
            {"num_chs": self.embed_dim, "reduction": self.net.patch_size, "module": f"net.layers.{index}"}
            for index in range(len(self.net.layers))
        ]

    def settings(self) -> dict[str, Any]:
        """Return the arguments of this model as plain data, for :meth:`from_settings`."""
        config = self.net.config
        current = {"num_classes": config.classes, "global_pool": config.pool, "img_size": config.image_size}
        arguments = {**self.arguments, **current, "layer_order": config.layer_order}
        return {"space": space_to_dict(self.space), "arguments": arguments}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> VisionModel:
        """Build a model with random weights from the return value of :meth:`settings`."""
        try:
            return cls(space_from_dict(settings["space"], "checkpoint"), **settings["arguments"])
        except (UnknownChoiceError, *MISFITS) as error:
            raise CheckpointError(
                f"the image model of the checkpoint cannot be built ({error}); upgrade nas-ext if a newer version wrote"
                " the file"
            ) from None

    def select(self, architecture: Architecture) -> VisionSubnet:
        return self.net.select(architecture, validated=True)

    def active_subnet(self) -> VisionSubnet:
        """Return the weights of the architecture in use; in training, sample it first."""
        if self.training and self.is_supernet and self.fixed_architecture is None:
            self.train_architecture = self.draw(self._updates)
            self.count_from(self._updates + 1)
        return super().active_subnet()

    def count_from(self, updates: int) -> None:
        """Set the number of training passes so far, which determines the next sampled architecture."""
        self._updates = updates
        self.updates.fill_(updates)

    def forward_features(self, x: Tensor) -> Tensor:
        """Map images (B, 3, height, width) to token features (B, N, C), the class token first."""
        self._check_size(x)
        return self.net.features(self.active_subnet(), x)

    def _check_size(self, x: Tensor) -> None:
        expected = tuple(side * self.net.patch_size for side in self.net.grid)
        if not self.arguments["dynamic_img_size"] and tuple(x.shape[-2:]) != expected:
            raise ConfigError(
                f"the images have {x.shape[-2]} x {x.shape[-1]} pixels; expected {expected[0]} x {expected[1]}: resize"
                " them, or build the model with dynamic_img_size=True"
            )

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Map token features (B, N, C) to logits (B, K); with ``pre_logits``, to pooled features (B, C)."""
        x = self.net.pooled(x, self.net.norm.select(x.shape[-1]))
        head = self.net.head
        return x if pre_logits or head is None else F.linear(x, *head.select(x.shape[-1], self.num_classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))

    def forward_intermediates(
        self,
        x: Tensor,
        indices: int | list[int] | None = None,
        return_prefix_tokens: bool = False,
        norm: bool = False,
        stop_early: bool = False,
        output_fmt: str = "NCHW",
        intermediates_only: bool = False,
    ) -> Any:
        """Return final token features (B, N, C), and the outputs of some layers.

        Args:
            indices: number of last layers, or a list of layer indices; default: all.
            output_fmt: shape of layer outputs, ``NCHW`` or ``NLC``.
        """
        self._check_size(x)
        subnet = self.active_subnet()
        selected, deepest = feature_take_indices(len(subnet.layers), indices)
        prefix_length, intermediates, last = self.net.prefix_tokens, [], x
        for index, (last, grid) in enumerate(self.net.outputs(subnet, x)):
            if index in selected:
                tokens = self.net.normalised(subnet, last) if norm else last
                patches = tokens[:, prefix_length:]
                if output_fmt == "NCHW":
                    patches = patches.transpose(1, 2).unflatten(2, grid).contiguous()
                with_prefix = return_prefix_tokens and prefix_length
                intermediates.append((patches, tokens[:, :prefix_length]) if with_prefix else patches)
            if stop_early and index == deepest:
                break
        return intermediates if intermediates_only else (self.net.normalised(subnet, last), intermediates)

    def prune_intermediate_layers(
        self, indices: int | list[int] = 1, prune_norm: bool = False, prune_head: bool = True
    ) -> list[int]:
        """Remove the layers after the deepest of ``indices``; return the indices as a list."""
        if self.net.config.layer_order:
            raise ConfigError("layers cannot be removed from a model with layer_order; extract a subnet instead")
        selected, deepest = feature_take_indices(self.space.smallest().number("layers"), indices)
        self.net.layers = self.net.layers[: deepest + 1]
        if prune_head:
            self.reset_classifier(0)
        return selected

    def get_classifier(self) -> nn.Module:
        return nn.Identity() if self.net.head is None else self.net.head

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        self.num_classes = num_classes
        self.net.set_classifier(num_classes, global_pool)

    def set_input_size(self, img_size: int | Sequence[int]) -> None:
        """Interpolate the stored positions for another image size in pixels."""
        size = to_2tuple(img_size)
        self.net.set_image_size(size)
        current = getattr(self, "pretrained_cfg", {})
        self.pretrained_cfg = self.default_cfg = {**current, "input_size": (self.in_chans, *size)}

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Recompute each layer in the backward pass, to save memory."""
        self.net.checkpointing = enable

    def no_weight_decay(self) -> set[str]:
        names = [name for name, _ in self.named_parameters()]
        tokens = ("net.positions", "net.class_token", "net.registers")
        return {name for name in names if name in tokens or name.endswith("relative")}

    def group_matcher(self, coarse: bool = False) -> dict[str, Any]:
        return {
            "stem": r"^net\.(?:class_token|registers|positions|embedding_norm|patch_embed)",
            "blocks": [(r"^net\.layers\.(\d+)", None), (r"^net\.norm", (99999,))],
        }


def _count_loaded(model: VisionModel, _: Any) -> None:
    if not model.updates.is_meta:
        model._updates = int(model.updates)


def image_pair(size: int | Sequence[int] | None) -> tuple[int, int] | None:
    return None if size is None else tuple(to_2tuple(size))
