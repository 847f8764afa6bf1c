"""What every elastic layer must satisfy. A new layer subclasses `ElasticContract` and writes `case`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas_core.layers.weights import named_tensors

State = Mapping[str, Tensor]


def nested_prefix(name: str, full: Tensor, part: Tensor) -> Tensor:
    """``part`` in the place of the prefix that it was cut from, zero elsewhere."""
    placed = torch.zeros_like(full)
    placed[tuple(slice(size) for size in part.shape)] = part
    return placed


def multihead_names(state: State) -> State:
    """Weights of self- or cross-attention under the names of ``nn.MultiheadAttention``."""
    renamed = {name: tensor for name, tensor in state.items() if name.startswith("out_proj")}
    for kind in ("weight", "bias"):
        if f"in_proj.{kind}" in state:
            renamed[f"in_proj_{kind}"] = state[f"in_proj.{kind}"]
        else:
            renamed[f"in_proj_{kind}"] = torch.cat([state[f"q_proj.{kind}"], state[f"kv_proj.{kind}"]])
    return renamed


def waves(*shape: int) -> Tensor:
    """A fixed input without symmetry."""
    return torch.linspace(-3, 9, math.prod(shape)).view(shape).sin()


@dataclass(frozen=True, kw_only=True)
class ElasticCase:
    """One elastic layer and its plain equivalent. A size is what ``select`` takes; the first is the full one."""

    layer: nn.Module
    sizes: tuple[tuple[Any, ...], ...]
    select: Callable[..., Any]
    """Weights of a size."""
    run: Callable[..., Tensor]
    """``run(layer, weights, *inputs)``."""
    inputs: Callable[..., tuple[Tensor, ...]]
    """Inputs for a size; gradients of the floating ones are compared."""
    static: Callable[..., nn.Module]
    """The same class, built for one size, without experts."""
    select_static: Callable[..., Any]
    """Weights of the static layer, given it and the size."""
    plain: Callable[[], nn.Module]
    """The torch module that the full size equals."""
    run_plain: Callable[..., Tensor]
    """``run_plain(module, *inputs)``."""
    rename: Callable[[State], State] = dict
    """The static layer's state or gradients under the names of the plain module."""
    count: Callable[..., int]
    """The formula: parameters of a size."""
    placed: Callable[[str, Tensor, Tensor], Tensor] | None = nested_prefix
    """Gradient of a supernet's parameter, given its name, the parameter and the static gradient; None with experts,
    whose gradients have a test of their own."""


def differentiable(inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(x.detach().clone().requires_grad_() if x.is_floating_point() else x for x in inputs)


def backward(output: Tensor, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Gradients of the inputs under a fixed weighting of the output; those of weights are left in ``grad``."""
    weighting = torch.randn(output.shape, generator=torch.Generator().manual_seed(3))
    (output * weighting).sum().backward()
    return [x.grad for x in inputs if x.grad is not None]


def assert_same(got: State, expected: State, what: str) -> None:
    assert set(got) == set(expected), what
    for name, tensor in expected.items():
        torch.testing.assert_close(got[name], tensor, atol=1e-5, rtol=1e-5, msg=lambda m, n=name: f"{what} {n}: {m}")


class ElasticContract:
    """Subclass it with a name that starts with ``Test``."""

    def case(self) -> ElasticCase:
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def in_double(self) -> Iterator[None]:
        """Products of a slice and of a matrix of its own may round differently on some processors."""
        torch.set_default_dtype(torch.float64)
        yield
        torch.set_default_dtype(torch.float32)

    @pytest.fixture
    def made(self) -> ElasticCase:
        torch.manual_seed(11)
        made = self.case()
        with torch.no_grad():  # biases and norms start as constants, which would hide mistakes
            for parameter in made.layer.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        return made

    @staticmethod
    def _selected(case: ElasticCase, size: tuple[Any, ...]) -> tuple[Any, dict[str, Tensor]]:
        weights = case.select(*size)
        named = dict(named_tensors(weights))
        for tensor in named.values():
            tensor.retain_grad()
        return weights, named

    @staticmethod
    def _static(case: ElasticCase, size: tuple[Any, ...], named: State) -> nn.Module:
        static = case.static(*size)
        only = next(iter(static.state_dict()))
        state = {name or only: tensor.detach().clone() for name, tensor in named.items()}
        static.load_state_dict(state, strict=True)
        return static

    def test_full_size_equals_the_plain_module(self, made: ElasticCase) -> None:
        size = made.sizes[0]
        weights, named = self._selected(made, size)
        plain = made.plain()
        static_names = list(made.static(*size).state_dict())
        as_state = {name or static_names[0]: tensor for name, tensor in named.items()}
        plain.load_state_dict({n: t.detach().clone() for n, t in made.rename(as_state).items()}, strict=True)
        ours, theirs = differentiable(made.inputs(*size)), differentiable(made.inputs(*size))
        output, expected = made.run(made.layer, weights, *ours), made.run_plain(plain, *theirs)
        torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
        for got, want in zip(backward(output, ours), backward(expected, theirs), strict=True):
            torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
        gradients = {name or static_names[0]: tensor.grad for name, tensor in named.items()}
        expected_gradients = {name: p.grad for name, p in plain.named_parameters()}
        assert all(gradient is not None for gradient in expected_gradients.values())
        assert_same(made.rename(gradients), expected_gradients, "gradient")  # type: ignore[arg-type]

    def test_extracted_equals_the_active_subnet(self, made: ElasticCase) -> None:
        for size in made.sizes:
            made.layer.zero_grad()
            weights, named = self._selected(made, size)
            static = self._static(made, size, named)
            ours, theirs = differentiable(made.inputs(*size)), differentiable(made.inputs(*size))
            output = made.run(made.layer, weights, *ours)
            expected = made.run(static, made.select_static(static, *size), *theirs)
            torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
            for got, want in zip(backward(output, ours), backward(expected, theirs), strict=True):
                torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
            gradients = {name: p.grad for name, p in static.named_parameters() if p.grad is not None}
            assert len(gradients) == len(named)
            only = next(iter(gradients))
            assert_same({n or only: t.grad for n, t in named.items()}, gradients, f"{size} selected")  # type: ignore[misc]
            if made.placed is None:
                continue
            supernet = dict(made.layer.named_parameters())
            placed = {name: made.placed(name, supernet[name], gradient) for name, gradient in gradients.items()}
            assert_same({name: p.grad for name, p in supernet.items()}, placed, f"{size} supernet")  # type: ignore[misc]

    def test_parameters_equal_the_formula(self, made: ElasticCase) -> None:
        for size in made.sizes:
            selected = sum(tensor.numel() for _, tensor in named_tensors(made.select(*size)))
            assert selected == sum(p.numel() for p in made.static(*size).parameters()) == made.count(*size)
