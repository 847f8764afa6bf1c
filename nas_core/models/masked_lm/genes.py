"""Genes of masked language models: like RoBERTa, or like BERT with layers of different widths."""

from __future__ import annotations

from nas_core.errors import SpaceError
from nas_core.models.genes import StackGenes
from nas_core.space import SearchSpace
from nas_core.space.bert import OUTER, RATIO, ffn_width

_CONSTANT = ("head_dim", "sequence_length")
GENES = StackGenes("a masked language model", ("layers", "embed_dim", "ffn_dim", *_CONSTANT), _CONSTANT, role="encoder")
BERT_GENES = StackGenes(
    "a BERT encoder", ("layers", "hidden_dim", "heads", "sequence_length"), ("sequence_length", OUTER), role="encoder"
)


def check_masked_lm_space(space: SearchSpace) -> None:
    if GENES.has(space, "hidden_dim"):
        check_bert_space(space)
        return
    for gene in (*GENES.names, *["heads"] * GENES.has(space, "heads")):
        GENES.check_gene(space, gene)
    if not GENES.has(space, "heads"):
        head_dim = int(GENES.options(space, "head_dim")[0][0])
        if invalid := [width for width in GENES.options(space, "embed_dim")[0] if int(width) % head_dim]:
            raise SpaceError(
                f"space {space.name!r} has embed_dim = {invalid[0]}, not divisible by head_dim {head_dim}; give a"
                " multiple, or a gene 'heads'"
            )
    _check_attention(space)


def check_bert_space(space: SearchSpace) -> None:
    genes = BERT_GENES
    for gene in genes.names:
        genes.check_gene(space, gene)
    widths = [gene for gene in ("ffn_dim", RATIO) if genes.has(space, gene)]
    if len(widths) != 1:
        names = " and ".join(widths) or "no ffn_dim"
        raise SpaceError(f"space {space.name!r} has {names}; expected either ffn_dim or {RATIO}")
    (genes.check_ratio if widths[0] == RATIO else genes.check_gene)(space, widths[0])
    if genes.has(space, OUTER):
        genes.check_gene(space, OUTER)
    elif any(choice.name == "hidden_dim" and choice.per for choice in space.choices):
        raise SpaceError(
            f"space {space.name!r} has a hidden_dim per layer but no {OUTER}; add {OUTER}, the width between layers"
        )
    for hidden, heads in zip(genes.per_layer(space, "hidden_dim"), genes.per_layer(space, "heads"), strict=True):
        if invalid := next(((w, h) for w in hidden for h in heads if int(w) % int(h)), None):
            raise SpaceError(
                f"space {space.name!r} has hidden_dim = {invalid[0]}, not divisible by {invalid[1]} heads; expected a"
                " multiple of each number of heads"
            )
    _check_attention(space)


def _check_attention(space: SearchSpace) -> None:
    for name in GENES.wrong_attention(space):
        raise SpaceError(f"space {space.name!r} has attention = {name!r}; expected one of {GENES.known_attention()}")


def widest_layers(space: SearchSpace) -> list[tuple[int, int]]:
    widths = widest_hidden(space)
    if not widths:
        return GENES.widest_layers(space)
    gene = "ffn_dim" if BERT_GENES.has(space, "ffn_dim") else RATIO
    largest = [max(float(option) for option in row) for row in BERT_GENES.per_layer(space, gene)]
    sizes = zip(largest, widths, strict=True)
    return [(int(size) if gene == "ffn_dim" else ffn_width(size, width), width) for size, width in sizes]


def widest_hidden(space: SearchSpace) -> list[int]:
    """Return the largest width of each layer, or [] without a gene ``hidden_dim``."""
    if not BERT_GENES.has(space, "hidden_dim"):
        return []
    return [max(int(option) for option in row) for row in BERT_GENES.per_layer(space, "hidden_dim")]
