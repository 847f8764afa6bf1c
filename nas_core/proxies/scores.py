"""The seven zero-cost proxies params, flops, synflow, nwot, jacov, grad_norm and snip.

They are defined in Abdelfattah et al., "Zero-Cost Proxies for Lightweight NAS", ICLR 2021, section 3.2. Weights are
matrices and kernels, without biases and parameters of norms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from nas_core.errors import ConfigError
from nas_core.proxies.scoring import Trial, gradients_of

_NORMS: frozenset[Any] = frozenset(
    {F.batch_norm, F.layer_norm, F.group_norm, F.instance_norm, F.rms_norm, torch.layer_norm, torch.batch_norm}
)
_ACTIVATIONS: frozenset[Any] = frozenset(
    {
        F.relu, F.relu6, F.leaky_relu, F.elu, F.gelu, F.silu, F.hardswish, F.mish, F.selu, F.celu, F.prelu, F.rrelu,
        torch.relu, torch.relu_, Tensor.relu, Tensor.relu_,
    }
)  # fmt: skip
_SOFTMAX: frozenset[Any] = frozenset({F.softmax, torch.softmax, Tensor.softmax, F.scaled_dot_product_attention})
_POOLS: frozenset[Any] = frozenset(
    {
        F.avg_pool1d, F.avg_pool2d, F.avg_pool3d, F.max_pool1d, F.max_pool2d, F.max_pool3d,
        torch.max_pool1d, torch.max_pool2d, torch.max_pool3d,
    }
)  # fmt: skip
_COUNTED = 2  # number of samples for counting FLOPs; batch norms need two
_LEAST_EIGENVALUE = 1e-5  # minimum eigenvalue in nwot; with equal samples, the determinant would be 0
_JACOV_K = 1e-5  # constant k in jacov, which keeps the score finite
_LEAST_FLOW = 1e-300  # minimum sum in synflow, whose logarithm is the score

_Called = Callable[..., Any]


class _Intercept(TorchFunctionMode):
    def __init__(
        self, functions: frozenset[Any], replacement: Callable[[_Called, Sequence[Any], Mapping[str, Any]], Any]
    ) -> None:
        super().__init__()
        self._functions, self._replacement = functions, replacement

    def __torch_function__(
        self, func: _Called, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        return self._replacement(func, args, kwargs) if func in self._functions else func(*args, **kwargs)


def _first(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    tensor: Tensor = args[0] if args else kwargs["input"]
    return tensor


def params(trial: Trial) -> float:
    """Return the number of parameters. A shared parameter counts once."""
    return float(sum(parameter.numel() for parameter in trial.network.parameters()))


def flops(trial: Trial) -> float:
    """Return the FLOPs of one sample, two for each multiply-add.

    Matrix products, convolutions, batch norms and pooling are counted. Published counts of NAS-Bench-201 differ, but
    rank cells equally.
    """
    multiply_adds: list[int] = []

    def count(function: _Called, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        output: Tensor = function(*args, **kwargs)
        window = 1 if function is F.batch_norm else _window(output.dim() - 2, args, kwargs)
        multiply_adds.append(output.numel() * window)
        return output

    counter = FlopCounterMode(display=False)
    inputs = tuple(tensor[:_COUNTED] for tensor in trial.inputs)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter, _Intercept(_POOLS | {F.batch_norm}, count):
        trial.logits(trial.tensors(), inputs)
    return (counter.get_total_flops() + 2 * sum(multiply_adds)) / _COUNTED


def _window(dimensions: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    size = args[1] if len(args) > 1 else kwargs["kernel_size"]
    sizes = [size] if isinstance(size, int) else list(size)
    return math.prod(sizes * dimensions if len(sizes) == 1 else sizes)


def grad_norm(trial: Trial) -> float:
    """Return the sum over layers of the Euclidean norm of the gradient of the loss."""
    return _total([gradient.norm() for _, gradient in trial.sensitivities])


def snip(trial: Trial) -> float:
    """Return the sum over weights of ``|weight * gradient|`` (Lee et al., "SNIP", ICLR 2019)."""
    return _total([(weight * gradient).abs().sum() for weight, gradient in trial.sensitivities])


def _total(parts: list[Tensor]) -> float:
    return float(torch.stack([part.float() for part in parts]).sum())


def nwot(trial: Trial) -> float:
    """Return the log-determinant of a kernel ``(B, B)``: the number of units with equal activity for two samples.

    A unit is active if the input of its activation is above 0 (Mellor et al., "Neural Architecture Search without
    Training", ICML 2021, section 3). Unlike there, eigenvalues are at least 1e-5, so that the score is finite.
    """
    kernels: list[Tensor] = []

    def compare(function: _Called, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        units = _first(args, kwargs)
        if units.dim() > 1 and len(units) % trial.batch == 0:
            active = (units.detach() > 0).reshape(trial.batch, -1).float()
            kernel = active @ active.mT + (1 - active) @ (1 - active).mT
            kernels.append(kernel if kernel.device.type == "mps" else kernel.double())
        return function(*args, **kwargs)

    with torch.no_grad(), _Intercept(_ACTIVATIONS, compare):
        trial.logits(trial.tensors())
    if not kernels:
        raise ConfigError("nwot needs activations such as relu and gelu, but the network calls none; leave nwot out")
    return float(torch.linalg.eigvalsh(torch.stack(kernels).sum(0).cpu()).clamp(min=_LEAST_EIGENVALUE).log().sum())


def jacov(trial: Trial) -> float:
    """Return minus the sum of ``log(v + k) + 1 / (v + k)`` over the eigenvalues v of the correlations of Jacobians.

    The Jacobian of a sample is the gradient of all outputs of the batch for its input, or for its embedded tokens
    (Mellor et al., first version, 2020). Constant Jacobians count as fully correlated (published score: -1e8).
    """
    tensors, sources = trial.tensors(), list[Tensor]()
    inputs = tuple(tensor.detach().clone().requires_grad_(tensor.is_floating_point()) for tensor in trial.inputs)
    tokens = [id(tensor) for tensor in inputs if not tensor.is_floating_point()]

    def embed(function: _Called, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        embedded = function(*args, **kwargs)
        if id(_first(args, kwargs)) in tokens and embedded.requires_grad:
            sources.append(embedded)
        return embedded

    with _Intercept(frozenset({F.embedding}), embed):
        logits = trial.logits(tensors, inputs)
    sources += [tensor for tensor in inputs if tensor.is_floating_point()]
    if not sources:
        raise ConfigError(
            "jacov needs gradients for images or embedded tokens, but the network has none; leave jacov out"
        )
    gradients = [gradient.reshape(trial.batch, -1) for gradient in gradients_of(logits.sum(), sources)]
    rows = torch.cat(gradients, 1).cpu().double()
    centred = rows - rows.mean(1, keepdim=True)
    norms = centred.norm(dim=1, keepdim=True)
    unit = centred / norms.clamp(min=torch.finfo(rows.dtype).tiny)
    constant = (norms == 0) | (norms == 0).mT
    correlations = torch.where(constant, 1.0, unit @ unit.mT)
    values = torch.linalg.eigvalsh(correlations).clamp(min=0) + _JACOV_K
    return -float((values.log() + 1 / values).sum())


def synflow(trial: Trial) -> float:
    """Return the logarithm of the sum over weights of ``|w| * dR/d|w|``, with R the sum of outputs for inputs of ones.

    Parameters are replaced by absolute values in float64, and norms by identities (Tanaka et al., "Pruning neural
    networks without any data by iteratively conserving synaptic flow", NeurIPS 2020). Networks that read tokens get the
    first sample instead of ones. Softmax outputs are constant, except inside ``nn.MultiheadAttention``.
    """
    exact = torch.float32 if trial.inputs[0].device.type == "mps" else torch.float64  # mps has no doubles
    tensors = {name: _unsigned(tensor) for name, tensor in trial.tensors(exact).items()}
    inputs = tuple(
        torch.ones_like(tensor[:1], dtype=exact) if tensor.is_floating_point() else tensor[:1]
        for tensor in trial.inputs
    )
    with sdpa_kernel(SDPBackend.MATH), _Intercept(_NORMS | _SOFTMAX, _linear):  # fused gradients overflow
        output = trial.logits(tensors, inputs).sum()
        weights = trial.weights(tensors)
        flows = [
            (weight.detach() * flow).abs().sum()
            for weight, flow in zip(weights, gradients_of(output, weights), strict=True)
        ]
    total = float(torch.stack(flows).sum()) if flows else 0.0
    return math.log(max(total, _LEAST_FLOW))


def _unsigned(tensor: Tensor) -> Tensor:
    absolute = tensor.detach().abs() if tensor.is_floating_point() else tensor
    return absolute.requires_grad_(tensor.requires_grad)


def _linear(function: _Called, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function with norms as identities, and softmax and attention weights as constants."""
    if function in _NORMS:
        return _first(args, kwargs)
    values = 2 if function is F.scaled_dot_product_attention else None
    fixed = [argument if place == values else _detached(argument) for place, argument in enumerate(args)]
    named = {name: argument if name == "value" else _detached(argument) for name, argument in kwargs.items()}
    return function(*fixed, **named)


def _detached(argument: Any) -> Any:
    return argument.detach() if isinstance(argument, Tensor) else argument
