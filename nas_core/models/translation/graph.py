"""Encoder-decoder transformers of HAT's translation spaces, one node for each sublayer.

Wang et al., "HAT: Hardware-Aware Transformers for Efficient NLP", ACL 2020. Nodes, in order: source embedding; per
encoder layer self-attention and feed-forward network; target embedding; per decoder layer self-attention,
cross-attention and feed-forward network; output projection.

A sublayer's residual sum and normalisation belong to its node, so residual connections are no nodes and no edges of
their own: each sublayer is fed by its predecessor alone. A cross-attention is also fed by the feed-forward networks of
the encoder layers it reads: gene ``decoder.arbitrary_cross`` is -1 for the last, 1 for the last two, 2 for the last
three, never more than there are.

Numbers of a node are divided by fixed sizes (``SCALES``), those of the base transformer, so that graphs of different
spaces are comparable; 0 where a node has no such size.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nas_core.errors import ArchitectureError
from nas_core.graph.graph import Graph
from nas_core.layers.attention.kinds import KINDS, AttentionKind
from nas_core.models.translation.genes import PLACES, attention_options
from nas_core.space import SearchSpace
from nas_core.space.architecture import Architecture
from nas_core.space.hat import READ_LAYERS, qkv_dims
from nas_core.space.mformer import ATTENTION_GENES, attention_of

_FIRST = (
    "source_embedding",
    "encoder_self_attention",
    "encoder_feed_forward",
    "target_embedding",
    "decoder_self_attention",
    "cross_attention",
    "decoder_feed_forward",
    "output",
)
"""Names of the operation indices 0 to 7; attention is softmax where its name does not say which."""
ATTRIBUTES = ("width", "heads", "qkv_dim", "ffn_dim", "memories")
"""Columns of ``attributes``: embedding size of the node's side; heads and joint width of queries, keys and values of an
attention; hidden size of a feed-forward network; encoder layers that a cross-attention reads."""
SCALES = (512.0, 8.0, 512.0, 2048.0, 3.0)
"""By what each column is divided."""

_ENCODER = ("encoder.ffn_dim", "encoder.self_heads")
_DECODER = ("decoder.ffn_dim", "decoder.self_heads", "decoder.cross_heads", "decoder.arbitrary_cross")


def operations() -> tuple[str, ...]:
    """Names of the operation indices, from 0: those of every kind of attention stand behind the first eight, the
    project's kinds before those of other distributions."""
    return _named(tuple(name for name, _ in KINDS.items()))


def operations_of(space: SearchSpace) -> int:
    """Count the operation indices that graphs of a space may have: those of softmax and linear attention, which every
    ranker of translation networks has been made for, and those before the last one that the space chooses."""
    names = operations()
    chosen = {
        KINDS.get(kind).operation(PLACES[gene])
        for gene in ATTENTION_GENES
        for layer in attention_options(space, gene)
        for kind in layer
    }
    return 1 + max(names.index(name) for name in (*_named(("softmax", "linear")), *chosen))


@lru_cache
def _named(kinds: tuple[str, ...]) -> tuple[str, ...]:
    own = [kind.operation(place) for kind in map(KINDS.get, kinds) for place in PLACES.values() if place in kind.places]
    return tuple(dict.fromkeys((*_FIRST, *own)))


def translation_graph(architecture: Architecture) -> Graph:
    """The graph of 3 + 2 (encoder layers) + 3 (decoder layers) nodes, with ``attributes`` (N, 5).

    Raises:
        ArchitectureError: no architecture, a gene of translation networks is missing or has not one option per layer,
            or ``decoder.arbitrary_cross`` is none of HAT's.
    """
    if not isinstance(architecture, Architecture):
        raise ArchitectureError(f"got {type(architecture).__name__}; expected an Architecture of a translation space")
    names, ops = operations(), list[int]()
    numbers: list[tuple[int, ...]] = []
    edges: list[tuple[int, int]] = []

    def add(operation: str, width: int, *sizes: int, after: int | None = None) -> int:
        node = len(ops)
        ops.append(names.index(operation))
        numbers.append((width, *sizes, *[0] * (len(ATTRIBUTES) - 1 - len(sizes))))
        edges.extend([] if after is None else [(after, node)])
        return node

    widths = [qkv_dims(architecture, gene) for gene in (_ENCODER[1], *_DECODER[1:3])]
    width = architecture.number("encoder.embed_dim")
    node = add("source_embedding", width)
    encoder: list[int] = []
    kinds, decoder_kinds, cross_kinds = (_attention(architecture, gene) for gene in ATTENTION_GENES)
    layers = _layers(architecture, "encoder.layers", _ENCODER)
    for (ffn, heads), kind, qkv in zip(layers, kinds, widths[0], strict=True):
        node = add(kind.operation("encoder"), width, heads, qkv, after=node)
        node = add("encoder_feed_forward", width, 0, 0, ffn, after=node)
        encoder.append(node)
    width = architecture.number("decoder.embed_dim")
    node = add("target_embedding", width)
    layers = _layers(architecture, "decoder.layers", _DECODER)
    genes = zip(layers, decoder_kinds, cross_kinds, *widths[1:], strict=True)
    for (ffn, heads, cross_heads, cross), kind, cross_kind, qkv, cross_qkv in genes:
        if cross not in READ_LAYERS:
            raise ArchitectureError(f"decoder.arbitrary_cross is {cross!r}; expected one of {sorted(READ_LAYERS)}")
        memories = encoder[-READ_LAYERS[cross] :]
        node = add(kind.operation("decoder"), width, heads, qkv, after=node)
        node = add(cross_kind.operation("cross"), width, cross_heads, cross_qkv, 0, len(memories), after=node)
        edges.extend((memory, node) for memory in memories)
        node = add("decoder_feed_forward", width, 0, 0, ffn, after=node)
    add("output", width, after=node)
    return Graph(ops, edges, attributes=np.array(numbers) / SCALES)


def _attention(architecture: Architecture, gene: str) -> list[AttentionKind]:
    """The kind of each layer."""
    names = attention_of(architecture, gene)
    for name in set(names) - set(KINDS.names()):
        raise ArchitectureError(f"an attention is {name!r}; expected one of {KINDS.names()}")
    kinds = {name: KINDS.get(name) for name in set(names)}
    for kind in kinds.values():
        if PLACES[gene] not in kind.places:
            raise ArchitectureError(f"{gene} is {kind.name!r}, which may stand in {', '.join(kind.places)} alone")
    return [kinds[name] for name in names]


def _layers(architecture: Architecture, depth: str, genes: tuple[str, ...]) -> list[tuple[int, ...]]:
    """The options of those genes, layer by layer."""
    layers = architecture.number(depth)
    for gene in genes:
        if layers < 1 or len(architecture.numbers(gene)) != layers:
            raise ArchitectureError(
                f"{gene} is {list(architecture.numbers(gene))} and {depth} {layers}; expected one number per layer"
            )
    return list(zip(*(architecture.numbers(gene) for gene in genes), strict=True))
