"""Other kinds of attention fitted to what the trained attention gives, layer by layer.

Each alternative reads what the trained attention of its layer reads and learns to give the same, which is much cheaper
than training the network and needs no labels (Zhang et al. 2025, "LoLCATs: On Low-Rank Linearizing of Large Language
Models", section 3.1, there with feature maps of its own; here the projections learn, so that a network with linear
attention stays a plain cosFormer). Where a kind sees no negative numbers, queries and keys are turned first; then the
output projection is solved for in closed form, then all projections are trained by gradients.

Shapes: N counted positions, Q queries' width, C channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.layers.weights import named_tensors
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.elastic.kinds import attention_choices
from nas_core.supernet.elastic.recorded import AttentionWeights, Place, Recorded, attentions_of, computed, record
from nas_core.supernet.elastic.signed import signed_pairs
from nas_core.supernet.teacher.taps import Taps

_EXACT = 1e-9
"""An error of rounding alone, as that of local attention whose window holds every sequence."""


class FitConfig(NamedTuple):
    """How alternatives are fitted."""

    steps: int = 200
    """Updates by gradients after the closed form; each is one layer on one batch."""
    lr: float = 2e-3
    """Learning rate of the first update; it falls to 0 along a cosine."""
    ridge: float = 1e-3
    """Penalty on the change of the output projection, over the mean variance of what it reads."""
    seed: int = 0
    """Decides the order of batches."""


class Fitted(NamedTuple):
    """How near an alternative came: squared errors over the mean square of the trained attention's output, on batches
    that were not fitted where there are five or more."""

    gene: str
    layer: int
    kind: str
    before: float
    """With the trained projections."""
    solved: float
    """With queries and keys turned, where the kind needs it, and the output projection solved for."""
    after: float


def fit(
    net: nn.Module,
    space: SearchSpace,
    batches: Sequence[Any],
    loss: Callable[[Any, Any], Tensor],
    config: FitConfig | None = None,
) -> list[Fitted]:
    """Fit each kind of attention that the space offers a layer to the one of the largest network.

    Only the projections of alternatives change: what the largest network computes stays the same to the last bit.

    Args:
        net: an elastic network over the space, whose kinds are copies of the trained one, see
            :func:`nas_core.supernet.elastic.kinds.with_kinds`.
        batches: calibration data.
        loss: of a subnet on a batch.

    Raises:
        ConfigError: no data, no kinds to choose from, or sequences longer than an alternative reads.
    """
    config = config or FitConfig()
    if not batches:
        raise ConfigError("other kinds of attention are fitted on calibration data; give --calibrate, e.g. 16")
    if config.steps < 0:
        raise ConfigError(f"{config.steps} steps of fitting; expected 0 or more")
    if not attention_choices(space):
        raise ConfigError(f"space {space.name!r} offers one kind of attention; name several, e.g. softmax,linear")
    training = net.training
    net.eval()
    try:
        return [
            found
            for choice in attention_choices(space)
            for found in _fit_gene(net, space, choice.name, batches, loss, config)
        ]
    finally:
        net.train(training)


def _fit_gene(
    net: Any,
    space: SearchSpace,
    gene: str,
    batches: Sequence[Any],
    loss: Callable[[Any, Any], Tensor],
    config: FitConfig,
) -> list[Fitted]:
    largest = space.largest()
    base = net.select(largest)
    trained = largest[gene]
    assert isinstance(trained, tuple)
    found = []
    for layer, row in enumerate(space.choice(gene).options[: len(trained)]):
        others: dict[str, AttentionWeights] = {}
        place: Place = ()
        for kind in map(str, row):
            if kind != trained[layer]:
                changed = Architecture({**largest, gene: (*trained[:layer], kind, *trained[layer + 1 :])})
                place, others[kind] = _changed(base, net.select(changed))
        if not others:
            continue
        recorded = record(base, place, [weights.kind for weights in others.values()], batches, loss)
        for kind, weights in others.items():
            found.append(Fitted(gene, layer, kind, *_fit_one(weights, recorded, config)))
    return found


def _changed(base: Any, other: Any) -> tuple[Place, AttentionWeights]:
    """Where two subnets have different attention, and that of the second."""
    before = dict(attentions_of(base))
    (found,) = [(at, weights) for at, weights in attentions_of(other) if weights.kind.name != before[at].kind.name]
    return found


def _fit_one(weights: AttentionWeights, recorded: Sequence[Recorded], config: FitConfig) -> tuple[float, float, float]:
    judged = max(1, len(recorded) // 5) if len(recorded) >= 5 else 0
    fitted, held_out = recorded[judged:], recorded[:judged] or recorded
    before = _mean_error(weights, held_out)
    if before < _EXACT:
        return before, before, before
    copies = _values(weights)

    def turn_and_solve() -> None:
        _restore(weights, copies)
        signed_pairs(weights, fitted)
        _solve(weights, fitted, config.ridge)

    _kept_if_better(weights, held_out, before, lambda: _solve(weights, fitted, config.ridge))
    if weights.kind.reads_positive_parts:
        _kept_if_better(weights, held_out, _mean_error(weights, held_out), turn_and_solve)
    solved = _mean_error(weights, held_out)
    if config.steps:
        _kept_if_better(weights, held_out, solved, lambda: _train(weights, fitted, config))
    return before, solved, _mean_error(weights, held_out)


def _mean_error(weights: AttentionWeights, recorded: Sequence[Recorded]) -> float:
    with torch.no_grad():
        sums = [_error(weights, each, each.output.square()[each.counted].sum()) for each in recorded]
        return float(torch.stack(sums).mean())


def _error(weights: AttentionWeights, recorded: Recorded, square: Tensor) -> Tensor:
    difference = (computed(weights, recorded) - recorded.output).square().sum(-1)
    return (difference * recorded.counted).sum() / square.clamp(min=1e-12)


def _kept_if_better(
    weights: AttentionWeights, recorded: Sequence[Recorded], error: float, change: Callable[[], None]
) -> None:
    former = _values(weights)
    change()
    if not _mean_error(weights, recorded) < error:
        _restore(weights, former)


def _values(weights: AttentionWeights) -> list[Tensor]:
    return [tensor.detach().clone() for _, tensor in named_tensors(weights)]


def _restore(weights: AttentionWeights, values: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for (_, tensor), value in zip(named_tensors(weights), values, strict=True):
            tensor.copy_(value)


def _solve(weights: AttentionWeights, recorded: Sequence[Recorded], ridge: float) -> None:
    """Change the output projection by the least squares solution, with a penalty on the change."""
    out = weights.out_proj
    with torch.no_grad():
        sums = [_sums(weights, each) for each in recorded]
        count, h, y, hh, hy = (sum(column[1:], column[0]) for column in zip(*sums, strict=True))
        count = count.clamp(min=1)
        products = hh - torch.outer(h, h) / count
        products.diagonal().add_(ridge * products.diagonal().mean() + 1e-12)
        change = torch.linalg.solve(products, hy - torch.outer(h, y) / count).T
        out.weight.add_(change.to(out.weight.dtype))
        out.bias.add_(((y - change @ h) / count).to(out.bias.dtype))


def _sums(weights: AttentionWeights, recorded: Recorded) -> tuple[Tensor, ...]:
    """Over counted positions: their number, heads h (Q,), what is missing in the output y (C,), h h^T, h y^T."""
    with Taps({"out": weights.out_proj.weight}, inputs=True) as taps:
        given = computed(weights, recorded)
    h = taps.inputs["out"][0][recorded.counted].double()
    y = (recorded.output - given)[recorded.counted].double()
    return recorded.counted.sum(), h.sum(0), y.sum(0), h.T @ h, h.T @ y


def _train(weights: AttentionWeights, recorded: Sequence[Recorded], config: FitConfig) -> None:
    tensors = [tensor for _, tensor in named_tensors(weights)]
    stream = torch.Generator().manual_seed(config.seed)
    squares = [each.output.square()[each.counted].sum() for each in recorded]
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
