"""What every kind of attention must satisfy. A new kind subclasses `AttentionContract` and writes two methods."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from nas_core.layers.attention.cosformer import CosformerState
from nas_core.layers.attention.softmax import (
    CrossAttentionWeights,
    ElasticCrossAttention,
    ElasticSelfAttention,
    SelfAttentionWeights,
    attend,
    cross_attention,
    cross_keys_values,
    cross_step,
    self_attention,
    self_step,
    split_heads,
)
from nas_core.layers.weights import Affine

C, Q, HEADS = 10, 12, 3


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
    return SelfAttentionWeights(in_proj, out_proj, weights.heads, relative, weights.linear)


class AttentionContract:
    """Subclass it with a name that starts with ``Test``."""

    def layer(self) -> ElasticSelfAttention:
        """Projections of C channels, Q channels of queries, HEADS heads."""
        raise NotImplementedError

    def reference(
        self, q: Tensor, k: Tensor, v: Tensor, weights: SelfAttentionWeights, mask: Tensor | None, causal: bool
    ) -> Tensor:
        """The attention as its equations stand, ``(B, H, T, D)``."""
        raise NotImplementedError

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
        x = torch.randn(4, 9, C)
        whole = self_attention(x, weights, causal=True)
        past, outputs = None, []
        for position in range(5):
            y, past = self_step(x[:, position : position + 1], weights, past)
            outputs.append(y)
        torch.testing.assert_close(torch.cat(outputs, 1), whole[:, :5], atol=1e-5, rtol=1e-4)
        order = torch.tensor([2, 2, 0, 3])  # beams that moved
        assert past is not None
        past = past.reorder(order) if isinstance(past, CosformerState) else (past[0][order], past[1][order])
        y, _ = self_step(x[order, 5:6], weights, past)
        torch.testing.assert_close(y, whole[order, 5:6], atol=1e-5, rtol=1e-4)

    def test_masked_keys_have_no_influence_and_no_gradient(self, weights: SelfAttentionWeights) -> None:
        x, mask = torch.randn(3, 8, C, requires_grad=True), padded(3, 8)
        tokens = mask[:, 0, 0]
        y = self_attention(x, weights, mask)
        (gradient,) = torch.autograd.grad(y[tokens].square().sum(), x)
        assert torch.equal(gradient.abs().sum(-1) > 0, tokens)
        changed = torch.where(tokens[..., None], x, x + 100.0)
        torch.testing.assert_close(self_attention(changed, weights, mask)[tokens], y[tokens], atol=1e-5, rtol=1e-5)

    def test_a_batch_equals_its_sentences(self, weights: SelfAttentionWeights) -> None:
        x, mask = torch.randn(3, 8, C), padded(3, 8)
        together = self_attention(x, weights, mask)
        for row in range(3):
            kept = mask[row, 0, 0]
            alone = self_attention(x[row : row + 1, kept], weights)
            torch.testing.assert_close(together[row : row + 1, kept], alone, atol=1e-5, rtol=1e-4)

    @pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
    def test_half_precision(self, weights: SelfAttentionWeights, causal: bool) -> None:
        x = torch.randn(2, 300, C)
        expected = self_attention(x, weights, causal=causal).detach()
        got = self_attention(x.bfloat16(), cast(weights, torch.bfloat16), causal=causal).detach()
        assert got.dtype == torch.bfloat16
        assert float((got.float() - expected).norm() / expected.norm()) < 0.03

    def test_fewer_heads_of_one_width_are_prefixes(self) -> None:
        """Where the width of queries is searched, each projection uses its first rows."""
        torch.manual_seed(0)
        layer = self.layer()
        small = layer.select(6, 2, 8)
        static = ElasticSelfAttention(6, 8, layer.linear, None if layer.relative is None else (2, 4))
        state = {
            f"{part}.{name}": t
            for part in ("in_proj", "out_proj")
            for name, t in small._asdict()[part]._asdict().items()
        }
        if small.relative is not None:
            state["relative"] = small.relative
        static.load_state_dict(state)
        x = torch.randn(2, 5, 6)
        torch.testing.assert_close(self_attention(x, static.select(6, 2)), self_attention(x, small))
        assert torch.equal(small.in_proj.weight[8:16], layer.in_proj.weight[Q : Q + 8, :6])


class CrossAttentionContract(AttentionContract):
    """For kinds that also read another sequence."""

    def cross(self) -> ElasticCrossAttention:
        """Projections of attention from C to 7 channels."""
        raise NotImplementedError

    @pytest.mark.parametrize("reads", [1, 2], ids=["one", "two"])
    def test_cross_attention_step_by_step(self, reads: int) -> None:
        """Also where the memory is that of two encoder layers, whose positions repeat."""
        weights: CrossAttentionWeights = self.cross().select(C, 7, HEADS)
        x, memory = torch.randn(3, 6, C), torch.randn(3, 11 * reads, 7)
        mask = padded(3, 11).repeat(1, 1, 1, reads)
        positions = (padded(3, 11)[:, 0, 0].cumsum(1) - 1).clamp(min=0).repeat(1, reads)
        pair = cross_keys_values(memory, weights)
        whole = cross_attention(x, pair, weights, mask, 0.0, positions)
        past: tuple[Tensor, Tensor] | CosformerState = pair
        if weights.linear is not None:
            config = weights.linear
            past = CosformerState.of(*pair, config.max_length, mask[:, 0, 0], positions, config.normalize)
        for position in range(6):
            y = cross_step(x[:, position : position + 1], past, weights, mask, position)
            torch.testing.assert_close(y, whole[:, position : position + 1], atol=1e-5, rtol=1e-4)
