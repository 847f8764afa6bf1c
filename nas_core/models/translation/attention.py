"""The kinds of attention that each layer of a translation network has, with their settings, and how far they read."""

from __future__ import annotations

from nas_core.layers.attention.kinds import AttentionKind, placed
from nas_core.layers.transformer import AttentionConfig
from nas_core.models.translation.genes import attention_options, bounded
from nas_core.models.translation.subnet import TranslationConfig
from nas_core.space import SearchSpace


def encoder_attention(space: SearchSpace, config: TranslationConfig) -> list[AttentionConfig]:
    """For each encoder layer of the space."""
    options = attention_options(space, "encoder.self_attention")
    return [
        AttentionConfig(
            _placed(config, "encoder", kinds, config.linear_encoder_length),
            relative=_relative(space, config, "encoder", layer),
        )
        for layer, kinds in enumerate(options)
    ]


def decoder_attention(space: SearchSpace, config: TranslationConfig) -> list[AttentionConfig]:
    """For each decoder layer of the space."""
    own, cross = (attention_options(space, f"decoder.{which}_attention") for which in ("self", "cross"))
    return [
        AttentionConfig(
            _placed(config, "decoder", kinds, config.linear.max_length),
            _placed(config, "cross", reads, config.linear.max_length),
            _relative(space, config, "decoder", layer),
        )
        for layer, (kinds, reads) in enumerate(zip(own, cross, strict=True))
    ]


def length_limits(space: SearchSpace, config: TranslationConfig) -> tuple[int | None, int | None]:
    """The longest source and the longest target that attention of the space's networks can read; None: any length.

    Attention of the decoder to itself reads the target, attention across reads both.
    """
    longest = config.linear.max_length
    source = [config.linear_encoder_length] * bounded(space, "encoder") + [longest] * bounded(space, "cross")
    target = [longest] * (bounded(space, "decoder") or bounded(space, "cross"))
    lowest = [min((limit for limit in limits if limit is not None), default=None) for limits in (source, target)]
    return lowest[0], lowest[1]


def _placed(
    config: TranslationConfig, place: str, names: tuple[str, ...], longest: int | None
) -> tuple[AttentionKind, ...]:
    settings = {config.linear.name: config.linear}
    return tuple(placed(settings.get(name, name), place, longest) for name in names)


def _relative(space: SearchSpace, config: TranslationConfig, side: str, layer: int) -> tuple[int, int] | None:
    """Farthest distance and largest head dimension of relative positions."""
    if not config.relative_length:
        return None
    if "head_dim" in space.fixed:
        return config.relative_length, space.largest().number("head_dim")
    fewest = min(int(heads) for heads in space.choice(f"{side}.self_heads").options[layer])
    return config.relative_length, space.largest().number("qkv_dim") // fewest
