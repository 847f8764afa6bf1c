"""Average attention, a kind of another distribution: each position takes the mean of what it may read."""

from dataclasses import dataclass

from torch import Tensor

from nas_core.layers.attention import AttentionKind, StateValue


@dataclass
class Average:
    """The sum of the values (B, H, 1, D) read so far; of another sequence, their mean."""

    total: Tensor
    count: int | Tensor = 1

    def tensors(self):
        return (self.total,)

    def reorder(self, order):
        return Average(self.total.index_select(0, order), self.count)


@dataclass(frozen=True)
class AverageAttention(AttentionKind):
    """Average attention without its gates (Zhang et al. 2018, arXiv 1805.00631)."""

    name: str = "average"
    colour, letter = "#b3892c", "A"
    masks_memory = False

    def attend(self, q, k, v, *, mask=None, causal=False, relative=None, dropout=0.0, key_positions=None):
        readable = v.new_ones(q.shape[2], k.shape[2]).tril(0 if causal else k.shape[2]) * (1 if mask is None else mask)
        return readable / readable.sum(-1, keepdim=True) @ v

    def weights(self, q, k, relative=None):
        return q.new_full((*q.shape[:3], k.shape[2]), 1 / k.shape[2])

    def step(self, q, k, v, past, relative=None):
        after = Average(past.total + v, past.count + 1) if past else Average(v)
        return after.total / after.count, after

    def memory(self, k, v, mask, positions):
        return Average(self.attend(k[:, :, :1], k, v, mask=mask))

    def read(self, q, memory, mask, position):
        return memory.total

    def macs(self, queries, keys, width, heads, *, causal=False, clip=0):
        return queries * keys * width

    def state_values(self, heads, dim, length):
        return (StateValue("total", ("batch", heads, 1, dim)),)

    def restored(self, tensors, position, row):
        return Average(tensors[0], position)


AVERAGE = AverageAttention()
