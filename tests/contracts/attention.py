"""Contract of a kind of attention: subclass it and write `kind` and `reference`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from nas_core.errors import ConfigError
from nas_core.export.parts import ExportModule, OpenDim, Value
from nas_core.export.program import check_onnx, trace, write_onnx
from nas_core.layers.attention import AttentionKind
from nas_core.layers.attention.kinds import ROLES, resolve_kind
from nas_core.layers.attention.projections import (
    CrossAttentionWeights,
    ElasticCrossAttention,
    ElasticSelfAttention,
    SelfAttentionWeights,
    attend,
    cross_attention,
    cross_keys_values,
    cross_step,
    self_attention,
    self_projections,
    self_read,
    self_step,
    split_heads,
)
from nas_core.layers.weights import Affine

C, Q, HEADS = 10, 12, 3
POSITIONS = 40
"""Of exported steps; more than any window in the tests."""


def padded(batch: int, length: int) -> Tensor:
    """``(B, 1, 1, S)``: sentences padded on the right, on the left, and not at all."""
    mask = torch.ones(batch, 1, 1, length, dtype=torch.bool)
    mask[0, ..., length - length // 3 :] = False
    if batch > 1:
        mask[1, ..., : length // 3] = False
    return mask


def cast(weights: SelfAttentionWeights, dtype: torch.dtype) -> SelfAttentionWeights:
    in_proj, out_proj = (Affine(*(t.to(dtype) for t in part)) for part in (weights.in_proj, weights.out_proj))
    relative = None if weights.relative is None else weights.relative.to(dtype)
    return SelfAttentionWeights(in_proj, out_proj, weights.heads, relative, weights.kind)


class Step(nn.Module):
    """A decoding step as it is exported: a position, the new query, key and value, and the state's tensors."""

    def __init__(self, kind: AttentionKind) -> None:
        super().__init__()
        self.kind = kind
        self.register_buffer("table", kind.step_table(POSITIONS))

    def forward(self, position: Tensor, q: Tensor, k: Tensor, v: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        row = None if self.table is None else nn.functional.embedding(position, self.table)
        read, after = self.kind.step(q, k, v, self.kind.restored(state, position, row))
        return (read, *after.tensors())


class AttentionContract:
    """Subclass it with a name that starts with ``Test``."""

    relative: tuple[int, int] | None = None
    """Farthest distance and head dimension of relative positions."""

    def kind(self) -> AttentionKind:
        """One that reads up to 300 positions at least, and whose window, if any, is shorter than 9."""
        raise NotImplementedError

    def reference(
        self, q: Tensor, k: Tensor, v: Tensor, weights: SelfAttentionWeights, mask: Tensor | None, causal: bool
    ) -> Tensor:
        """Compute the attention by its equations, ``(B, H, T, D)``."""
        raise NotImplementedError

    def layer(self) -> ElasticSelfAttention:
        return ElasticSelfAttention(C, Q, self.kind(), self.relative)

    @pytest.fixture
    def weights(self) -> SelfAttentionWeights:
        torch.manual_seed(5)
        layer = self.layer()
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
        selected: SelfAttentionWeights = layer.select(C, HEADS)
        return selected

    @pytest.mark.parametrize(("masked", "causal"), [(False, False), (True, False), (False, True)])
    @pytest.mark.parametrize("length", [1, 7, 131])
    def test_outputs_and_gradients_equal_the_reference(
        self, weights: SelfAttentionWeights, length: int, masked: bool, causal: bool
    ) -> None:
        torch.manual_seed(length)
        weights = cast(weights, torch.double)
        mask = padded(3, length) if masked and length > 1 else None
        inputs = torch.randn(3, length, 3 * Q, dtype=torch.double)
        weighting = torch.randn(3, length, C, dtype=torch.double)
        got, expected = [], []
        for use, found in ((attend, got), (self.reference, expected)):
            x = inputs.clone().requires_grad_()
            q, k, v = split_heads(x, 3, HEADS)
            if use is attend:
                y = attend(q, k, v, weights, mask, 0.0, causal)
            else:
                y = self.reference(q, k, v, weights, mask, causal).transpose(1, 2).flatten(2)
                y = nn.functional.linear(y, *weights.out_proj)
            tensors = [x, *(t for t in (weights.relative,) if t is not None)]
            found += [y.detach(), *torch.autograd.grad((y * weighting).sum(), tensors)]
        for name, a, b in zip(("output", "input", "relative"), got, expected, strict=False):
            torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}")

    def test_decoding_equals_teacher_forcing(self, weights: SelfAttentionWeights) -> None:
        """Also of beams that moved, and of a state that went through its tensors."""
        x = torch.randn(4, 23, C)
        full = self_attention(x, weights, causal=True)
        past, order = None, torch.arange(4)
        for position in range(23):
            y, past = self_step(x[order, position : position + 1], weights, past)
            torch.testing.assert_close(y, full[order, position : position + 1], atol=1e-5, rtol=1e-4)
            if position in (4, 15):
                moved = torch.tensor([2, 2, 0, 3])
                past, order = past.reorder(moved), order[moved]
        assert past is not None
        shapes = [value.shape for value in weights.kind.state_values(HEADS, Q // HEADS, "past")]
        sizes = {"batch": 4, "past": 23}
        expected = [tuple(sizes[dim] if isinstance(dim, str) else dim for dim in shape) for shape in shapes]
        assert [tuple(tensor.shape) for tensor in past.tensors()] == expected

    @pytest.mark.parametrize("length", [1, 3, 8, 9, 30])
    def test_decoding_goes_on_behind_a_whole_sequence(self, weights: SelfAttentionWeights, length: int) -> None:
        """The state made of all keys and values at once is that of as many steps."""
        x = torch.randn(2, length + 3, C)
        full = self_attention(x, weights, causal=True)
        y, past = self_read(x[:, :length], weights)
        torch.testing.assert_close(y, full[:, :length], atol=1e-5, rtol=1e-4)
        _, k, v = self_projections(x[:, :length], weights)
        by_steps = None
        for position in range(length):
            current = slice(position, position + 1)
            _, by_steps = weights.kind.step(k[:, :, current], k[:, :, current], v[:, :, current], by_steps)
        assert by_steps is not None
        for at_once, stepped in zip(past.tensors(), by_steps.tensors(), strict=True):
            torch.testing.assert_close(at_once, stepped, atol=1e-5, rtol=1e-4)
        for position in range(length, length + 3):
            y, past = self_step(x[:, position : position + 1], weights, past)
            torch.testing.assert_close(y, full[:, position : position + 1], atol=1e-5, rtol=1e-4)

    def test_masked_keys_have_no_influence_and_no_gradient(self, weights: SelfAttentionWeights) -> None:
        x, mask = torch.randn(3, 8, C, requires_grad=True), padded(3, 8)
        tokens = mask[:, 0, 0]
        y = self_attention(x, weights, mask)
        (gradient,) = torch.autograd.grad(y[tokens].square().sum(), x)
        assert torch.equal(gradient.abs().sum(-1) > 0, tokens)
        changed = torch.where(tokens[..., None], x, x + 100.0)
        torch.testing.assert_close(self_attention(changed, weights, mask)[tokens], y[tokens], atol=1e-5, rtol=1e-5)

    @pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
    def test_half_precision(self, weights: SelfAttentionWeights, causal: bool) -> None:
        x = torch.randn(2, 300, C)
        expected = self_attention(x, weights, causal=causal).detach()
        got = self_attention(x.bfloat16(), cast(weights, torch.bfloat16), causal=causal).detach()
        assert got.dtype == torch.bfloat16
        assert float((got.float() - expected).norm() / expected.norm()) < 0.03

    def test_parameters_are_those_of_the_layer(self) -> None:
        counted = sum(p.numel() for p in self.layer().parameters()) - (4 * Q * C + 3 * Q + C)
        assert counted == self.kind().parameters(Q // HEADS, self.relative[0] if self.relative else 0)

    @pytest.mark.parametrize("length", [5, 33, 150])
    def test_the_formula_counts_what_is_multiplied(self, length: int) -> None:
        """Beside what denominators take, one column of each head's values."""
        kind, dim = self.kind(), 32
        q = torch.zeros(1, 2, length, dim)
        with FlopCounterMode(display=False) as counter:
            kind.plain(q, q, q)
        formula = 2 * kind.macs(length, length, 2 * dim, 2)
        assert formula <= counter.get_total_flops() <= formula * (1 + 1 / dim)

    def test_plain_products_and_weights_give_the_same(self, weights: SelfAttentionWeights) -> None:
        """Of positive queries and keys: linear attention reads nothing by a query without a positive channel."""
        kind = weights.kind
        q, k, v = (torch.rand(3, 2, HEADS, 29, Q // HEADS) + 0.1).unbind(0)
        usual = kind.attend(q, k, v, relative=weights.relative)
        torch.testing.assert_close(kind.plain(q, k, v, weights.relative), usual, atol=1e-5, rtol=1e-4)
        read = kind.weights(q, k, weights.relative)
        torch.testing.assert_close(read.sum(-1), torch.ones(2, HEADS, 29))
        torch.testing.assert_close(read @ v, usual, atol=1e-5, rtol=1e-4)

    def test_places_and_names(self) -> None:
        kind = self.kind()
        assert kind.roles and set(kind.roles) <= set(ROLES)
        assert len({kind.operation(role) for role in kind.roles}) == len(kind.roles)
        for role in ROLES:
            if role in kind.roles:
                assert resolve_kind(kind, role, 300).max_length in (None, 300)
            else:
                with pytest.raises(ConfigError, match=role):
                    resolve_kind(kind, role)
        assert kind.is_bounded == (kind.scaled(300).max_length == 300)

    @pytest.mark.onnx
    def test_an_exported_step_equals_decoding(self, tmp_path: Path) -> None:
        torch.manual_seed(2)
        kind, dim = self.kind(), Q // HEADS
        step, values = Step(kind), kind.state_values(HEADS, dim, "past")
        q, k, v = torch.randn(3, 2, HEADS, POSITIONS, dim).unbind(0)
        state = [torch.zeros([{"batch": 2, "past": 0}.get(dim, dim) for dim in value.shape]) for value in values]
        past = None
        for position in range(POSITIONS):
            now = [x[:, :, position : position + 1] for x in (q, k, v)]
            usual, past = kind.step(*now, past)
            result, *state = step(torch.tensor(position), *now, *state)
            torch.testing.assert_close(result, usual, atol=1e-5, rtol=1e-4)
        new = tuple(Value(name, ("batch", HEADS, 1, dim)) for name in "qkv")
        arguments = [Value(x.name, x.shape, "positive" if x.positive else "number") for x in values]
        after = [
            Value(f"next_{x.name}", tuple("past + 1" if size == "past" else size for size in x.shape))
            for x in arguments
        ]
        open_dims = [OpenDim("past", 0, POSITIONS - 1)] if any("past" in x.shape for x in arguments) else []
        part = ExportModule(
            "step",
            step,
            (Value("position", (), "token", POSITIONS), *new, *arguments),
            (Value("read", ("batch", HEADS, 1, dim)), *after),
            (OpenDim("batch"), *open_dims),
        )
        write_onnx(trace(part), part, tmp_path / "step.onnx")
        assert check_onnx(tmp_path / "step.onnx", part) < 1e-4


class CrossAttentionContract(AttentionContract):
    """For kinds that also read another sequence."""

    def cross(self) -> ElasticCrossAttention:
        """Projections of attention from C to 7 channels."""
        return ElasticCrossAttention(C, 7, Q, self.kind())

    @pytest.mark.parametrize("reads", [1, 2], ids=["one", "two"])
    def test_cross_attention_step_by_step(self, reads: int) -> None:
        """Also where the memory is that of two encoder layers, whose positions repeat."""
        weights: CrossAttentionWeights = self.cross().select(C, 7, HEADS)
        x, memory = torch.randn(3, 6, C), torch.randn(3, 11 * reads, 7)
        mask = padded(3, 11).repeat(1, 1, 1, reads)
        positions = (padded(3, 11)[:, 0, 0].cumsum(1) - 1).clamp(min=0).repeat(1, reads)
        pair = cross_keys_values(memory, weights)
        full = cross_attention(x, pair, weights, mask, 0.0, positions)
        kept = weights.kind.memory(*pair, mask, positions)
        needed = mask if weights.kind.masks_memory else None
        for position in range(6):
            y = cross_step(x[:, position : position + 1], kept, weights, needed, position)
            torch.testing.assert_close(y, full[:, position : position + 1], atol=1e-5, rtol=1e-4)
