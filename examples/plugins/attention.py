"""Example of an attention kind: the output is the mean of the values."""

from dataclasses import dataclass

from nas_core.layers.attention import AttentionKind


@dataclass(frozen=True)
class AverageAttention(AttentionKind):
    """Average attention without its gates (Zhang et al. 2018, arXiv 1805.00631)."""

    name: str = "average"

    def attend(self, q, k, v, *, mask=None, causal=False, **options):
        readable = v.new_ones(q.shape[2], k.shape[2]).tril(0 if causal else k.shape[2]) * (1 if mask is None else mask)
        return readable / readable.sum(-1, keepdim=True) @ v

    def macs(self, queries, keys, width, heads, **options):
        return queries * keys * width


AVERAGE = AverageAttention()
