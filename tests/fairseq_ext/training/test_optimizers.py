"""What fairseq's optimizers do with layers that a subnet lacks: pages tell it, and it follows from no option's name."""

from argparse import Namespace

import pytest
import torch
from fairseq.optim.adam import FairseqAdam
from fairseq.optim.fp16_optimizer import FP16Optimizer, MemoryEfficientFP16Optimizer

ADAM = Namespace(
    lr=[0.1], adam_betas="(0.9,0.98)", adam_eps=1e-8, weight_decay=0.0, tpu=False, use_old_adam=False,
    fp16_adam_stats=False, _name="adam",
)  # fmt: skip


def optimizer_of(kind, parameters):
    """As fairseq's trainer builds it with bf16, which scales no loss."""
    common = Namespace(
        bf16=True, fp16_scale_window=None, model_parallel_size=1, fp16_no_flatten_grads=kind == "--bf16",
        fp16_init_scale=1, fp16_scale_tolerance=0.0, threshold_loss_scale=None, min_loss_scale=1e-4,
    )  # fmt: skip
    settings = Namespace(
        common=common,
        optimizer=ADAM,
        optimization=Namespace(update_freq=[1]),
        distributed_training=Namespace(distributed_world_size=1),
    )
    adam = FairseqAdam(ADAM, parameters)
    if kind == "float32":
        return adam
    if kind == "--memory-efficient-bf16":
        return MemoryEfficientFP16Optimizer(settings, parameters, adam)
    copies = FP16Optimizer.build_fp32_params(ADAM, parameters, flatten=kind == "--fp16")
    inner = FairseqAdam(ADAM, list(copies.values()) if isinstance(copies, dict) else copies)
    return FP16Optimizer(settings, parameters, inner, copies)


@pytest.mark.parametrize(
    ("kind", "moves"), [("float32", False), ("--memory-efficient-bf16", False), ("--bf16", True), ("--fp16", True)]
)
def test_whether_adams_momentum_moves_a_layer_that_the_subnet_lacks(monkeypatch, kind, moves):
    """Their float32 copies have a gradient for every weight: zeros where there is none."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)  # the index of the CPU
    torch.manual_seed(0)
    layers = [torch.nn.Linear(3, 3) for _ in range(2)]
    if kind != "float32":
        layers = [layer.to(torch.bfloat16) for layer in layers]
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    optimizer = optimizer_of(kind, parameters)
    kept = []
    for used in (layers, layers[:1]):
        optimizer.zero_grad()
        x = torch.ones(2, 3, dtype=parameters[0].dtype)
        for layer in used:
            x = layer(x)
        optimizer.backward(x.float().pow(2).sum())
        optimizer.step()
        kept.append([parameter.detach().clone() for parameter in parameters])
    of_first, of_second = ([not torch.equal(*pair) for pair in list(zip(*kept, strict=True))[part]] for part in
                           (slice(0, 2), slice(2, 4)))  # fmt: skip
    assert all(of_first) and of_second == [moves, moves]
