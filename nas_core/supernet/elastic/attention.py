"""Fit other attention types to the output of trained attention, layer by layer.

Each layer learns the output of the trained attention from its inputs, without labels (Zhang et al. 2025, "LoLCATs: On
Low-Rank Linearizing of Large Language Models", section 3.1). Unlike there, projections are trained instead of feature
maps.

Shapes: B batch, T/S length of queries and keys, D head dim, C channels, Q = H * D.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nas_core.layers.attention.projections import SelfAttentionWeights
from nas_core.layers.torch_modes import evaluating
from nas_core.layers.weights import Affine, named_tensors
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.elastic.kinds import attention_choices
from nas_core.supernet.elastic.recording import (
    AttentionWeights,
    Recorded,
    TreePath,
    attentions_of,
    compute_attention,
    record,
)
from nas_core.supernet.teacher.taps import Taps

# Added to variances relative to their mean, for directions without input.
_JITTER = 1e-6


class FitConfig(NamedTuple):
    """Settings of :func:`fit`."""

    steps: int = 200
    """Gradient updates per layer, each on one batch."""
    lr: float = 2e-3
    """Initial learning rate. It decays to 0 along a cosine."""
    ridge: float = 1e-3
    """Penalty on the change of the output projection, relative to the mean variance of its input."""
    seed: int = 0
    """Seed of the order of batches."""


class FitErrors(NamedTuple):
    """Squared errors of an attention type, divided by the mean square of the trained attention's output.

    They are measured on held-out batches if there are at least five batches.
    """

    gene: str
    layer: int
    kind: str
    before: float
    """Error with the trained projections."""
    closed_form: float
    """Error after the closed form."""
    final: float
    """Error after the gradient updates."""


def fit(
    net: nn.Module,
    space: SearchSpace,
    batches: Sequence[Any],
    loss: Callable[[Any, Any], Tensor],
    config: FitConfig | None = None,
) -> list[FitErrors]:
    """Fit each attention type that a layer may choose to the attention of the largest network.

    The output of the largest network does not change.

    Args:
        net: elastic network; see :func:`nas_core.supernet.elastic.kinds.with_kinds`.
        batches: calibration data, at least one batch.
        loss: function from a subnet and a batch to the loss.
    """
    config = config or FitConfig()
    genes = [choice.name for choice in attention_choices(space)]
    with evaluating(net):
        return [fitted for gene in genes for fitted in _fit_gene(net, space, gene, batches, loss, config)]


def _fit_gene(
    net: Any,
    space: SearchSpace,
    gene: str,
    batches: Sequence[Any],
    loss: Callable[[Any, Any], Tensor],
    config: FitConfig,
) -> list[FitErrors]:
    largest = space.largest()
    base = net.select(largest)
    trained = largest[gene]
    assert isinstance(trained, tuple)
    fitted = []
    for layer, row in enumerate(space.choice(gene).options[: len(trained)]):
        weights_of: dict[str, AttentionWeights] = {}
        path: TreePath = ()
        for kind in map(str, row):
            if kind != trained[layer]:
                changed = Architecture({**largest, gene: (*trained[:layer], kind, *trained[layer + 1 :])})
                path, weights_of[kind] = _changed_attention(base, net.select(changed))
        if not weights_of:
            continue
        recorded = record(base, path, [weights.kind for weights in weights_of.values()], batches, loss)
        for kind, weights in weights_of.items():
            fitted.append(FitErrors(gene, layer, kind, *_fit_one(weights, recorded, config)))
    return fitted


def _changed_attention(base: Any, other: Any) -> tuple[TreePath, AttentionWeights]:
    before = dict(attentions_of(base))
    (changed,) = [
        (path, weights) for path, weights in attentions_of(other) if weights.kind.name != before[path].kind.name
    ]
    return changed


def _fit_one(weights: AttentionWeights, recorded: Sequence[Recorded], config: FitConfig) -> tuple[float, float, float]:
    count = max(1, len(recorded) // 5) if len(recorded) >= 5 else 0
    fitted, held_out = recorded[count:], recorded[:count] or recorded
    before = _mean_error(weights, held_out)
    copies = _values(weights)

    def rotate_and_solve() -> None:
        _restore(weights, copies)
        rotate(weights, fitted)
        _solve(weights, fitted, config.ridge)

    _keep_if_better(weights, held_out, before, lambda: _solve(weights, fitted, config.ridge))
    if weights.kind.reads_positive_parts:
        _keep_if_better(weights, held_out, _mean_error(weights, held_out), rotate_and_solve)
    closed_form_error = _mean_error(weights, held_out)
    if config.steps:
        _keep_if_better(weights, held_out, closed_form_error, lambda: _train(weights, fitted, config))
    return before, closed_form_error, _mean_error(weights, held_out)


def _mean_error(weights: AttentionWeights, recorded: Sequence[Recorded]) -> float:
    with torch.no_grad():
        sums = [_error(weights, batch, batch.output.square()[batch.loss_mask].sum()) for batch in recorded]
        return float(torch.stack(sums).mean())


def _error(weights: AttentionWeights, recorded: Recorded, square: Tensor) -> Tensor:
    difference = (compute_attention(weights, recorded) - recorded.output).square().sum(-1)
    return (difference * recorded.loss_mask).sum() / square.clamp(min=1e-12)


def _keep_if_better(
    weights: AttentionWeights, recorded: Sequence[Recorded], error: float, change: Callable[[], None]
) -> None:
    previous = _values(weights)
    change()
    if not _mean_error(weights, recorded) < error:
        _restore(weights, previous)


def _values(weights: AttentionWeights) -> list[Tensor]:
    return [tensor.detach().clone() for _, tensor in named_tensors(weights)]


def _restore(weights: AttentionWeights, values: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for (_, tensor), value in zip(named_tensors(weights), values, strict=True):
            tensor.copy_(value)


def _solve(weights: AttentionWeights, recorded: Sequence[Recorded], ridge: float) -> None:
    out_proj = weights.out_proj
    with torch.no_grad():
        sums = [_sums(weights, batch) for batch in recorded]
        count, h, y, hh, hy = (sum(column[1:], column[0]) for column in zip(*sums, strict=True))
        count = count.clamp(min=1)
        products = hh - torch.outer(h, h) / count
        products.diagonal().add_(ridge * products.diagonal().mean() + 1e-12)
        change = torch.linalg.solve(products, hy - torch.outer(h, y) / count).T
        out_proj.weight.add_(change.to(out_proj.weight.dtype))
        out_proj.bias.add_(((y - change @ h) / count).to(out_proj.bias.dtype))


def _sums(weights: AttentionWeights, recorded: Recorded) -> tuple[Tensor, ...]:
    with Taps({"out": weights.out_proj.weight}, inputs=True) as taps:
        output = compute_attention(weights, recorded)
    # sums over positions: their number, heads h (Q,), residual y (C,), h h^T, h y^T
    h = taps.inputs["out"][0][recorded.loss_mask].double()
    y = (recorded.output - output)[recorded.loss_mask].double()
    return recorded.loss_mask.sum(), h.sum(0), y.sum(0), h.T @ h, h.T @ y


def _train(weights: AttentionWeights, recorded: Sequence[Recorded], config: FitConfig) -> None:
    tensors = [tensor for _, tensor in named_tensors(weights)]
    stream = torch.Generator().manual_seed(config.seed)
    squares = [batch.output.square()[batch.loss_mask].sum() for batch in recorded]
    optimizer = torch.optim.Adam(tensors, config.lr, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.steps)
    rounds = -(-config.steps // len(recorded))
    order = chain.from_iterable(torch.randperm(len(recorded), generator=stream).tolist() for _ in range(rounds))
    for _, number in zip(range(config.steps), order, strict=False):
        gradients = torch.autograd.grad(_error(weights, recorded[number], squares[number]), tensors)
        for tensor, gradient in zip(tensors, gradients, strict=True):
            tensor.grad = gradient
        optimizer.step()
        schedule.step()
    for tensor in tensors:
        tensor.grad = None


def rotate(weights: AttentionWeights, recorded: Sequence[Recorded]) -> None:
    """Rotate queries and keys of each head so that ReLU keeps the largest positive products.

    The first D/2 channels become the directions with the largest attention scores on the data, and the others their
    negatives. Then ``relu(a) relu(b) + relu(-a) relu(-b)`` is ``a b`` if that is positive.
    """
    queries, keys = _queries_and_keys(weights)
    width = len(queries.bias) // weights.heads
    with torch.no_grad():
        read = _moments([batch.x[batch.loss_mask] for batch in recorded])
        memory = read if recorded[0].memory is None else _moments([_memory(batch) for batch in recorded])
        for head in range(weights.heads):
            rows = slice(head * width, (head + 1) * width)
            q, k = (torch.cat([p.weight[rows], p.bias[rows, None]], 1).double() for p in (queries, keys))
            root_q, root_k = _root(q @ read @ q.T), _root(k @ memory @ k.T)
            u, singular, vh = torch.linalg.svd(root_q.T @ root_k)
            q = singular.sqrt()[:, None] * (u.T @ torch.linalg.solve(root_q, q))
            k = singular.sqrt()[:, None] * (vh @ torch.linalg.solve(root_k, k))
            for projection, value in ((queries, _with_negatives(q)), (keys, _with_negatives(k))):
                projection.weight[rows] = value[:, :-1].to(projection.weight.dtype)
                projection.bias[rows] = value[:, -1].to(projection.bias.dtype)


def _queries_and_keys(weights: AttentionWeights) -> tuple[Affine, Affine]:
    if isinstance(weights, SelfAttentionWeights):
        chunks = [tensor.detach().chunk(3) for tensor in weights.in_proj]
        return Affine(chunks[0][0], chunks[1][0]), Affine(chunks[0][1], chunks[1][1])
    keys = Affine(*(tensor.detach().chunk(2)[0] for tensor in weights.kv_proj))
    return Affine(*(tensor.detach() for tensor in weights.q_proj)), keys


def _memory(recorded: Recorded) -> Tensor:
    assert recorded.memory is not None
    return recorded.memory.flatten(0, 1) if recorded.mask is None else recorded.memory[recorded.mask[:, 0, 0]]


def _moments(inputs: Sequence[Tensor]) -> Tensor:
    ones = (torch.nn.functional.pad(x.double(), (0, 1), value=1.0) for x in inputs)
    total = torch.stack([x.T @ x for x in ones]).sum(0)
    moments: Tensor = total / total[-1, -1].clamp(min=1.0)
    return moments


def _root(moments: Tensor) -> Tensor:
    jitter = _JITTER * moments.diagonal().mean() + 1e-30
    root: Tensor = torch.linalg.cholesky(
        moments + jitter * torch.eye(len(moments), dtype=moments.dtype, device=moments.device)
    )
    return root


def _with_negatives(rows: Tensor) -> Tensor:
    half = len(rows) // 2
    return torch.cat([rows[:half], -rows[:half], rows[half : half + len(rows) % 2]])
