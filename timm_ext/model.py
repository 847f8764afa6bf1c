"""The image network with timm's interface: one class for supernets and for static subnets.

Shapes: B batch, N tokens, C channels, K classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import CheckpointError, ConfigError, UnknownChoiceError, unknown_choice
from nas_core.layers import MoSConfig
from nas_core.models.image.net import VisionConfig, VisionNet, VisionSubnet
from nas_core.space import Architecture, SearchSpace, space_from_dict, space_to_dict
from nas_core.space.space import SAMPLINGS
from nas_core.supernet.active import SubnetHolder
from timm_ext.requests import MISFITS, check_arguments, check_traceable, taken_layers

_NO_ARGUMENTS = ("self", "space", "unknown", "__class__")


class VisionModel(SubnetHolder[VisionSubnet], nn.Module):
    """A supernet over a search space, or the static network of a space with one architecture.

    The architecture in use is :attr:`architecture`. A supernet in training mode draws one at random for each forward
    pass, from its seed and the number of passes so far (a buffer, so that a resumed run goes on with the same draws);
    in evaluation it is :attr:`eval_architecture`, at first the largest. :meth:`using` overrides both.

    Args:
        space: genes of :mod:`nas_core.space.image`.
        num_classes: K; 0 for pooled features.
        img_size: height and width for which positions are stored; default the space's. Images of other sizes that
            divide into patches are accepted by every model, with interpolated positions.
        global_pool: ``avg``, ``max``, ``avgmax``, ``token``, or an empty string for every token.
        dynamic_img_size: unlike in timm True by default; without it, images of other sizes are refused.
        drop_rate: after the embedding and each sublayer. ``attn_drop_rate``, ``act_drop_rate`` and ``drop_path_rate``
            are on attention weights, hidden units and whole sublayers.
        mos: experts of the feed-forward layers: none, layer, neuron or another of ``nas_core.layers.mixtures()``; a
            static network has none. ``mos_experts``, ``mos_router_hidden``, ``mos_router_layers``,
            ``mos_router_dropout``, ``mos_start`` and ``mos_rank`` as in :class:`nas_core.layers.MoSConfig`.
        architecture_seed: of the draws while training; ``architecture_draw``: ``gene`` or ``architecture``.
        linear_form: how linear attention is computed, with the same results; ``auto`` chooses by device and length.
        activation, norm_eps, embedding_scale, norm_embedding, norm_after_pool, registers, smooth_positions,
            layer_order: as in :class:`nas_core.models.image.VisionConfig`, for networks that were trained elsewhere.
        prepared: how images are prepared, by the names of timm's data configuration (``mean``, ``std``, ``crop_pct``,
            ..); default: the registered model's.
    """

    def __init__(
        self,
        space: SearchSpace,
        num_classes: int = 10,
        in_chans: int = 3,
        img_size: int | Sequence[int] | None = None,
        global_pool: str = "avg",
        class_token: bool = True,
        normalize: str = "denominator",
        drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        act_drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        mos: str = "none",
        mos_experts: int = 2,
        mos_router_hidden: int = 128,
        mos_router_layers: int = 2,
        mos_router_dropout: float = 0.0,
        mos_start: str = "independent",
        mos_rank: int = 0,
        architecture_seed: int = 1,
        architecture_draw: str = "gene",
        dynamic_img_size: bool = True,
        linear_form: str = "auto",
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
        check_arguments(unknown, arguments)
        super().__init__()
        if architecture_draw not in SAMPLINGS:
            raise unknown_choice("way to draw architectures", architecture_draw, SAMPLINGS)
        experts = MoSConfig(
            kind=mos,
            experts=mos_experts,
            router_hidden=mos_router_hidden,
            router_layers=mos_router_layers,
            router_dropout=mos_router_dropout,
            start=mos_start,
            rank=mos_rank,
        )
        self.arguments, self.is_supernet = arguments, space.cardinality() > 1
        config = VisionConfig(
            classes=num_classes,
            channels=in_chans,
            image_size=image_pair(img_size),
            class_token=class_token,
            pool=global_pool,
            normalize=normalize,
            linear_form=linear_form,
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
            known = {name: tuple(value) if isinstance(value, list) else value for name, value in prepared.items()}
            self.pretrained_cfg = self.default_cfg = {**known, "input_size": (in_chans, *size)}
        self.start(space, architecture_seed, architecture_draw)
        if self.is_supernet:
            self.register_buffer("updates", torch.zeros((), dtype=torch.long))
            self._updates = 0  # what the buffer holds, known without asking the device
            self.register_load_state_dict_post_hook(_count_loaded)
        self.in_chans, self.num_classes = in_chans, num_classes
        self.num_features = self.head_hidden_size = self.embed_dim = self.net.embed_dim
        self.feature_info = [
            {"num_chs": self.embed_dim, "reduction": self.net.patch_size, "module": f"net.layers.{index}"}
            for index in range(len(self.net.layers))
        ]

    # -- as plain data -------------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """What :meth:`from_settings` builds an equal model from, as JSON-able data."""
        config = self.net.config
        now = {"num_classes": config.classes, "global_pool": config.pool, "img_size": config.image_size}
        now["layer_order"] = config.layer_order
        return {"space": space_to_dict(self.space), "arguments": {**self.arguments, **now}}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> VisionModel:
        """A model from what :meth:`settings` gave.

        Raises:
            CheckpointError: the settings are of another kind or of a newer version.
        """
        try:
            return cls(space_from_dict(settings["space"], "checkpoint"), **settings["arguments"])
        except (UnknownChoiceError, *MISFITS) as error:
            raise CheckpointError(
                f"settings of an image model lack or misuse an argument ({error}); upgrade nas-ext"
            ) from None

    # -- the architecture in use ---------------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> VisionSubnet:
        return self.net.select(architecture, known=True)

    def active_subnet(self) -> VisionSubnet:
        """The weights of the architecture in use; while training a supernet, of the next draw."""
        if self.training and self.is_supernet and self.held is None:
            self.train_architecture = self.draw(self._updates)
            self.count_from(self._updates + 1)
        return super().active_subnet()

    def count_from(self, updates: int) -> None:
        """Draw the next architectures as after so many updates of a supernet."""
        self._updates = updates
        self.updates.fill_(updates)

    # -- timm's interface ----------------------------------------------------------------------------------------------

    def forward_features(self, x: Tensor) -> Tensor:
        """Images (B, 3, height, width) to normalised tokens (B, N, C), the class token first."""
        self._check(x)
        return self.net.features(self.active_subnet(), x)

    def _check(self, x: Tensor) -> None:
        check_traceable(x)
        stored = tuple(side * self.net.patch_size for side in self.net.grid)
        if not self.arguments["dynamic_img_size"] and tuple(x.shape[-2:]) != stored:
            raise ConfigError(
                f"images of {x.shape[-2]} x {x.shape[-1]} pixels for a model of {stored[0]} x {stored[1]}; resize"
                " them, or build it with dynamic_img_size=True"
            )

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Tokens (B, N, C) to logits (B, K), or to what the classifier reads."""
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
        """The outputs of some layers as (B, C, rows, columns) or ``NLC``, and the normalised tokens after the last.

        ``indices``: the last n layers, or those listed; default all.
        """
        if output_fmt not in ("NCHW", "NLC"):
            raise unknown_choice("format of intermediate features", output_fmt, ("NCHW", "NLC"))
        self._check(x)
        subnet = self.active_subnet()
        taken, deepest = taken_layers(len(subnet.layers), indices)
        first, intermediates, last = self.net.prefix_tokens, [], x
        for index, (last, grid) in enumerate(self.net.outputs(subnet, x)):
            if index in taken:
                tokens = self.net.normalised(subnet, last) if norm else last
                patches = tokens[:, first:]
                if output_fmt == "NCHW":
                    patches = patches.transpose(1, 2).unflatten(2, grid).contiguous()
                prefix = return_prefix_tokens and first
                intermediates.append((patches, tokens[:, :first]) if prefix else patches)
            if stop_early and index == deepest:
                break
        return intermediates if intermediates_only else (self.net.normalised(subnet, last), intermediates)

    def prune_intermediate_layers(
        self, indices: int | list[int] = 1, prune_norm: bool = False, prune_head: bool = True
    ) -> list[int]:
        """Drop the layers after the last one listed; the indices that were kept."""
        if self.net.config.layer_order:
            raise ConfigError("layers in an order of their own cannot be dropped from the end; extract a subnet")
        taken, deepest = taken_layers(self.space.smallest().number("layers"), indices)
        self.net.layers = self.net.layers[: deepest + 1]
        if prune_head:
            self.reset_classifier(0)
        return taken

    def get_classifier(self) -> nn.Module:
        return nn.Identity() if self.net.head is None else self.net.head

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        self.num_classes = num_classes
        self.net.set_classifier(num_classes, global_pool)

    def set_input_size(self, img_size: int | Sequence[int] | None = None, **others: Any) -> None:
        """Store positions for another image size, interpolated from those there are."""
        check_arguments({name: value for name, value in others.items() if value is not None}, ("img_size",))
        size = image_pair(img_size)
        if size is not None:
            self.net.set_image_size(size)
            known = getattr(self, "pretrained_cfg", {})
            self.pretrained_cfg = self.default_cfg = {**known, "input_size": (self.in_chans, *size)}

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Recompute each layer in the backward pass instead of keeping what it computed."""
        self.net.checkpointing = enable

    def no_weight_decay(self) -> set[str]:
        names = [name for name, _ in self.named_parameters()]
        own = ("net.positions", "net.class_token", "net.registers")
        return {name for name in names if name in own or name.endswith("relative")}

    def group_matcher(self, coarse: bool = False) -> dict[str, Any]:
        return {
            "stem": r"^net\.(?:class_token|registers|positions|embedding_norm|patch_embed)",
            "blocks": [(r"^net\.layers\.(\d+)", None), (r"^net\.norm", (99999,))],
        }


def _count_loaded(model: VisionModel, _: Any) -> None:
    if not model.updates.is_meta:
        model._updates = int(model.updates)


def image_pair(size: int | Sequence[int] | None) -> tuple[int, int] | None:
    """Height and width, also of a square given by its side."""
    if size is None:
        return None
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) != 2:
        raise ConfigError(f"img_size is {size!r}; expected pixels, or height and width")
    return int(pair[0]), int(pair[1])
