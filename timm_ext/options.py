"""Settings and command line of ``python -m timm_ext.train``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

from nas_core.checks import SEEDS, Range
from nas_core.errors import ConfigError, check_choice
from nas_core.options import add_options, check_ranges, read_options
from nas_core.precision import PRECISIONS
from nas_core.supernet.teacher.losses import DISTILLATION_RANGES

SAMPLINGS = ("spos", "sandwich")
LARGEST = "largest"
"""Value of ``--teacher`` that makes the largest subnet the teacher."""
EXPERTS = ("mos_experts", "mos_router_hidden", "mos_router_layers")
_MODEL_OPTIONS = ("search_space", "subnet", "mos", *EXPERTS)
_RANGES = {
    **DISTILLATION_RANGES,
    **dict.fromkeys(("epochs", "batch_size", "grad_accum_steps", "log_interval"), Range(1)),
    **dict.fromkeys(("val_count", "train_count", "valid_random", "img_size"), Range(0)),
    **dict.fromkeys(("updates", "warmup_updates", "warmup_epochs", "workers"), Range(0)),
    **dict.fromkeys(("min_lr", "warmup_lr", "weight_decay", "clip_grad"), Range(0)),
    **dict.fromkeys(("mixup", "cutmix", "color_jitter"), Range(0)),
    **dict.fromkeys(("drop", "attn_drop", "act_drop", "drop_path", "smoothing", "ema"), Range(0, 1, exclude=(1,))),
    "reprob": Range(0, 1),
    "scale": Range(0, 1, exclude=(0,)),
    "lr": Range(0, exclude=(0,)),
    "seed": SEEDS,
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of a training run."""

    data: str
    """training images: a folder with one subfolder per class, a folder with train/ and possibly val/, or an npz file"""
    model: str = ""
    """model of timm_ext, such as mformer_cifar10_small_supernet; default: the network of --init"""
    output: str
    """output folder; a run that was interrupted is resumed from it"""
    val_data: str = ""
    """validation images; default: val/ in --data, or held-out training images"""
    val_count: int = 0
    """number of training images held out for validation; default: a tenth of each class, at most 5000"""
    train_count: int = 0
    """number of training images; 0: all"""
    search_space: str = ""
    """search space, a name or YAML file; default: that of --model"""
    subnet: str = ""
    """architecture file; only this architecture is trained"""
    mos: str = ""
    """experts in the feed-forward layers of a supernet: none, layer or neuron; default: those of --model"""
    mos_experts: int = 2
    """number of experts per linear layer"""
    mos_router_hidden: int = 128
    """hidden units of a router"""
    mos_router_layers: int = 2
    """linear layers of a router"""
    init: str = ""
    """checkpoint of the same network with initial weights, such as a file of 'nas-ext elastic'"""
    sampling: str = "spos"
    """subnets per update of a supernet: spos (a random one), or sandwich (also the largest and the smallest)"""
    teacher: str = ""
    """teacher for distillation: a checkpoint of timm_ext or timm's trainer, or 'largest' for the largest subnet of
    --sampling sandwich"""
    distill_weight: float = 0.5
    """weight w of the loss against the teacher's probabilities; the loss against labels has weight 1 - w"""
    distill_temperature: float = 1.0
    """temperature of the logits of teacher and student"""
    valid_random: int = 2
    """number of validated random subnets, in addition to the smallest and the largest"""
    epochs: int = 30
    """number of epochs"""
    updates: int = 0
    """number of weight updates, also of the schedule; replaces --epochs"""
    batch_size: int = 128
    """images per pass and worker of torchrun"""
    grad_accum_steps: int = 1
    """number of passes per update; their gradients are averaged"""
    opt: str = "adamw"
    """optimizer, by timm's name"""
    opt_betas: tuple[float, ...] = ()
    """two betas of Adam-like optimizers; default: those of the optimizer (mFormer: 0.9 0.998)"""
    lr: float = 1e-3
    """highest learning rate; not scaled by the number of workers"""
    min_lr: float = 1e-6
    """final learning rate"""
    warmup_lr: float = 1e-6
    """initial learning rate"""
    warmup_epochs: int = 2
    """number of warmup epochs of the learning rate"""
    warmup_updates: int = 0
    """number of warmup updates, with --updates; replaces --warmup-epochs"""
    sched: str = "cosine"
    """learning rate schedule, by timm's name"""
    weight_decay: float = 0.05
    """weight decay of matrices; not applied to biases, norms and positions"""
    decay_all: bool = False
    """apply weight decay to all parameters, as fairseq does"""
    clip_grad: float = 0.0
    """largest gradient norm; 0: no clipping"""
    smoothing: float = 0.1
    """label smoothing, from 0 to below 1"""
    mixup: float = 0.0
    """alpha of mixup"""
    cutmix: float = 0.0
    """alpha of cutmix"""
    drop: float = 0.0
    """dropout after the embedding and each sublayer"""
    attn_drop: float = 0.0
    """dropout on attention weights"""
    act_drop: float = 0.0
    """dropout on hidden units of feed-forward layers (mFormer: 0.1)"""
    drop_path: float = 0.0
    """stochastic depth rate (mFormer: 0.1)"""
    scale: float = 0.5
    """smallest area of a random crop, as a fraction of the image"""
    aa: str = ""
    """automatic augmentation policy, by timm's name (mFormer: rand-m9-mstd0.5-inc1)"""
    color_jitter: float = 0.0
    """strength of colour jitter (mFormer: 0.4)"""
    reprob: float = 0.0
    """probability of random erasing (mFormer: 0.25)"""
    ema: float = 0.0
    """decay of the moving average of the weights, from 0 to below 1; 0: no average"""
    img_size: int = 0
    """image height and width in pixels; default: those of the model"""
    precision: str = "fp32"
    """precision: fp32, tf32 (NVIDIA Ampere or later), bf16 or fp16 (both with autocast)"""
    torchcompile: str = field(default="", metadata={"alone": "inductor"})
    """compile a static network with torch.compile and this backend (without a value: inductor)"""
    seed: int = 1
    """random seed of weights, data order, augmentation and sampled architectures"""
    workers: int = 0
    """number of data loader processes per worker of torchrun"""
    log_interval: int = 50
    """number of updates between reports of the loss"""
    device: str = "cpu"
    """device: cpu, cuda, or cuda:1; under torchrun cpu or cuda"""

    def __post_init__(self) -> None:
        check_choice("sampling (--sampling)", self.sampling, SAMPLINGS)
        check_choice("precision (--precision)", self.precision, PRECISIONS)
        check_ranges(self, _RANGES)
        for invalid, message in self._conflicts():
            if invalid:
                raise ConfigError(message)

    def changed(self, names: Sequence[str]) -> list[str]:
        """Return those of ``names`` whose setting differs from its default."""
        defaults = {field.name: field.default for field in fields(self)}
        return [name for name in defaults if name in names and getattr(self, name) != defaults[name]]

    def _conflicts(self) -> Iterator[tuple[object, str]]:
        def flag(names: list[str]) -> str:
            return f"--{names[0].replace('_', '-')}" if names else ""

        network = flag(self.changed(_MODEL_OPTIONS))
        warmup, updates, size = self.warmup_updates, self.updates, self.batch_size
        yield (
            not self.model and not self.init,
            ("neither --model nor --init is given; give the name of a model, or a checkpoint to start from"),
        )
        yield (
            not self.model and network,
            (f"{network} is given without --model, but the checkpoint of --init sets it; leave {network} out"),
        )
        betas = self.opt_betas
        yield (
            betas and (len(betas) != 2 or not all(0 <= beta < 1 for beta in betas)),
            (f"--opt-betas is {' '.join(map(str, betas))}; expected two numbers from 0 to below 1, such as 0.9 0.998"),
        )
        yield (
            warmup and not updates,
            (f"--warmup-updates {warmup} is given without --updates; give both, or --warmup-epochs"),
        )
        yield (
            updates and warmup >= updates,
            f"--warmup-updates {warmup} is not below --updates {updates}; give fewer warmup updates",
        )
        yield (
            (self.mixup or self.cutmix) and size % 2,
            (f"--batch-size is {size}; expected an even number with --mixup or --cutmix"),
        )
        option = flag(self.changed(("distill_weight", "distill_temperature")))
        yield (
            option and not self.teacher,
            f"{option} is given without --teacher; give a trained network as --teacher, or leave {option} out",
        )
        yield (
            self.teacher == LARGEST and self.sampling != "sandwich",
            ("--teacher largest needs the largest subnet in each update; give --sampling sandwich"),
        )
        yield (
            self.teacher == LARGEST and self.distill_weight == 1 and not self.init,
            "with --teacher largest and --distill-weight 1, most subnets learn only from an untrained network; give a"
            " smaller --distill-weight, or trained weights with --init",
        )


def parse(arguments: Sequence[str] | None = None) -> TrainConfig:
    return read_options(TrainConfig, parser().parse_args(arguments))


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser("python -m timm_ext.train", description="Train an image model or a supernet.")
    add_options(result, TrainConfig)
    return result
