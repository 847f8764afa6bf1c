"""Parameters and FLOPs of a translation architecture, by formula.

Counts leave out embeddings and the output projection unless a vocabulary is given, as HAT's tables do. FLOPs are two
per multiply-accumulate of matrix products, for one sentence, all target positions at once (HAT's convention).
"""

from __future__ import annotations

from dataclasses import dataclass

from nas_core.errors import ArchitectureError
from nas_core.layers.attention.kinds import KINDS, AttentionKind
from nas_core.space import Architecture
from nas_core.space.hat import READ_LAYERS, qkv_dims
from nas_core.space.mformer import ATTENTION_GENES, attention_of

_HEADS = ("encoder.self_heads", "decoder.self_heads", "decoder.cross_heads")


@dataclass(frozen=True)
class Lengths:
    """Sentence lengths in tokens at which FLOPs are counted."""

    source: int = 30
    """Source tokens (HAT: 30 for WMT, 23 for IWSLT)."""
    target: int = 30
    """Target tokens."""


def parameters(
    architecture: Architecture,
    source_vocab: int = 0,
    target_vocab: int = 0,
    share_all_embeddings: bool = False,
    share_decoder_embeddings: bool = False,
    norm_first: bool = False,
) -> int:
    """Parameters of the static network, counted without building it; embeddings only where a vocabulary is given.

    Raises:
        ArchitectureError: a gene of translation networks is missing.
    """
    e, d = architecture.number("encoder.embed_dim"), architecture.number("decoder.embed_dim")
    encoder, decoder, across = (qkv_dims(architecture, gene) for gene in _HEADS)
    total = 0
    for q, ffn in zip(encoder, architecture.numbers("encoder.ffn_dim"), strict=True):
        total += _attention(q, e, e) + _feed_forward(e, ffn) + 2 * _norm(e)
    for q, read, ffn in zip(decoder, across, architecture.numbers("decoder.ffn_dim"), strict=True):
        total += _attention(q, d, d) + _attention(read, d, e) + _feed_forward(d, ffn) + 3 * _norm(d)
    if norm_first:
        total += _norm(e) + _norm(d)
    if share_all_embeddings:
        return total + source_vocab * max(e, d)
    return total + source_vocab * e + target_vocab * d * (1 if share_decoder_embeddings else 2)


def _attention(q: int, width: int, memory: int) -> int:
    """Queries from ``width``, keys and values from ``memory``, output to ``width``."""
    return (width * q + q) + 2 * (memory * q + q) + (q * width + width)


def _feed_forward(width: int, ffn: int) -> int:
    return width * ffn + ffn + ffn * width + width


def _norm(width: int) -> int:
    return 2 * width


def params_m(architecture: Architecture) -> float:
    """Millions of parameters without embeddings and output projection."""
    return parameters(architecture) / 1e6


def flops(architecture: Architecture, lengths: Lengths | None = None, target_vocab: int = 0) -> int:
    """FLOPs of one sentence; the output projection only where a vocabulary is given.

    Cross-attention to several encoder layers projects and reads that many times the source.

    Raises:
        ArchitectureError: a gene of translation networks is missing. UnknownChoiceError: no such kind of attention.
    """
    lengths = lengths or Lengths()
    s, t = lengths.source, lengths.target
    e, d = architecture.number("encoder.embed_dim"), architecture.number("decoder.embed_dim")
    macs = t * d * target_vocab
    encoder, decoder, across = (_kinds(architecture, gene) for gene in ATTENTION_GENES)
    sizes = architecture.numbers("encoder.ffn_dim"), architecture.numbers("encoder.self_heads")
    for ffn, heads, kind, q in zip(*sizes, encoder, qkv_dims(architecture, _HEADS[0]), strict=True):
        macs += s * (4 * q * e + 2 * e * ffn) + kind.macs(s, s, q, heads)
    names = ("decoder.ffn_dim", "decoder.arbitrary_cross", "decoder.self_heads", "decoder.cross_heads")
    widths = (qkv_dims(architecture, gene) for gene in _HEADS[1:])
    genes = zip(*(architecture.numbers(name) for name in names), decoder, across, *widths, strict=True)
    for ffn, option, heads, cross_heads, kind, cross, q, p in genes:
        if option not in READ_LAYERS:
            raise ArchitectureError(f"decoder.arbitrary_cross is {option!r}; expected one of {sorted(READ_LAYERS)}")
        read = s * min(READ_LAYERS[option], architecture.number("encoder.layers"))
        macs += t * (4 * q * d + 2 * d * ffn) + kind.macs(t, t, q, heads, causal=True)
        macs += t * 2 * p * d + read * 2 * p * e + cross.macs(t, read, p, cross_heads)
    return 2 * macs


def _kinds(architecture: Architecture, gene: str) -> list[AttentionKind]:
    names = attention_of(architecture, gene)
    known = {name: KINDS.get(name) for name in set(names)}
    return [known[name] for name in names]


def flops_g(architecture: Architecture, lengths: Lengths | None = None) -> float:
    """Billions of FLOPs, without the output projection."""
    return flops(architecture, lengths) / 1e9
