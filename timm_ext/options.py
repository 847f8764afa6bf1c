"""Settings and command line of ``python -m timm_ext.train``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

from nas_core.checks import SEEDS, Range
from nas_core.errors import ConfigError, unknown_choice
from nas_core.options import add_options, check_ranges, read_options
from nas_core.precision import PRECISIONS
from nas_core.supernet.teacher.losses import DISTILLATION_RANGES

SAMPLINGS = ("spos", "sandwich")
LARGEST = "largest"
"""Value of ``--teacher`` for the largest subnet of each update."""
EXPERTS = ("mos_experts", "mos_router_hidden", "mos_router_layers", "mos_router_dropout", "mos_start", "mos_rank")
_OF_MODEL = ("search_space", "subnet", "mos", *EXPERTS)
_RANGES = {
    **DISTILLATION_RANGES,
    **dict.fromkeys(("epochs", "batch_size", "grad_accum_steps", "log_interval"), Range(1)),
    **dict.fromkeys(("val_count", "train_count", "valid_random", "stability_architectures", "img_size"), Range(0)),
    **dict.fromkeys(("updates", "warmup_updates", "warmup_epochs", "workers", "keep_every"), Range(0)),
    **dict.fromkeys(("min_lr", "warmup_lr", "weight_decay", "clip_grad"), Range(0)),
    **dict.fromkeys(("mixup", "cutmix", "color_jitter", "mos_apart"), Range(0)),
    **dict.fromkeys(("drop", "attn_drop", "act_drop", "drop_path", "smoothing", "ema"), Range(0, 1, without=(1,))),
    "reprob": Range(0, 1),
    "scale": Range(0, 1, without=(0,)),
    "lr": Range(0, without=(0,)),
    "seed": SEEDS,
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run."""

    data: str
    """training images: a folder with one sub-folder per class, or with train/ and optionally val/ (or validation/), or
    an npz of JPEG bytes"""
    model: str = ""
    """model of timm_ext, e.g. mformer_cifar10_small or mformer_cifar10_small_supernet; default: network of --init"""
    output: str
    """run folder; an interrupted run is resumed"""
    val_data: str = ""
    """validation images; default: val/ or validation/ of --data, else --val-count of the training images"""
    val_count: int = 0
    """training images held out for validation, even if --data has val/; default: a tenth of each class, 5000 at most"""
    train_count: int = 0
    """number of training images; 0: all"""
    search_space: str = ""
    """space of a supernet: a name or a YAML file; default: the model's"""
    subnet: str = ""
    """architecture file: train this one network"""
    mos: str = ""
    """experts of a supernet's feed-forward layers: none, layer or neuron; default: the model's"""
    mos_experts: int = 2
    """with experts: number per linear layer"""
    mos_router_hidden: int = 128
    """with experts: width of the routers' hidden layers"""
    mos_router_layers: int = 2
    """with experts: linear layers of a router"""
    mos_router_dropout: float = 0.0
    """with experts: dropout in the routers' hidden layers"""
    mos_start: str = "independent"
    """with experts: initialisation as independent, equal or near copies"""
    mos_rank: int = 0
    """with experts: rank of the difference from the first expert; 0: full"""
    mos_apart: float = 0.0
    """weight of the similarity of experts in the loss: mean squared cosine between rows of two experts; 0: none"""
    init: str = ""
    """initial weights: a checkpoint of the same network, e.g. of 'nas-ext extract' or 'nas-ext elastic'"""
    sampling: str = "spos"
    """supernets: spos (one random subnet per update) or sandwich (also the largest and the smallest)"""
    teacher: str = ""
    """teacher: a checkpoint of timm_ext (of a supernet, its largest network) or timm's trainer; or largest, the largest
    subnet of --sampling sandwich"""
    distill_weight: float = 0.5
    """with --teacher: share of the loss against its probabilities; the labels have the rest"""
    distill_temperature: float = 1.0
    """with --teacher: temperature of both logits"""
    distill_hidden: float = 0.0
    """if --teacher is the network's supernet: weight of the difference of feed-forward inputs"""
    distill_attention: float = 0.0
    """if --teacher is the network's supernet: weight of the difference of attention outputs"""
    teacher_cache: str = ""
    """with --teacher: folder to cache its probabilities, reused with the same images"""
    teacher_top_k: int = 0
    """with --teacher-cache: most probable classes to keep; 0: all"""
    valid_random: int = 2
    """supernets: random subnets validated in addition to the smallest and the largest"""
    stability_architectures: int = 0
    """supernets: number of subnets (RankNAS: 100 to 200) whose stable ranking by validation loss ends training; 0:
    train all epochs"""
    stability_tau: float = 0.9
    """stop when Kendall's tau between two epochs' rankings is above this"""
    stability_patience: int = 5
    """stop when that tau has risen more often than this in a row"""
    epochs: int = 30
    """passes over the training images"""
    updates: int = 0
    """number of updates, also of the schedule; replaces --epochs"""
    batch_size: int = 128
    """images per pass and worker; an update has this times the workers of torchrun times --grad-accum-steps"""
    grad_accum_steps: int = 1
    """passes whose gradients are averaged into one update; a supernet draws one subnet for all"""
    opt: str = "adamw"
    """optimizer, by timm's name"""
    opt_betas: tuple[float, ...] = ()
    """betas of Adam and its relatives, two numbers; default: the optimizer's (mFormer: 0.9 0.998)"""
    lr: float = 1e-3
    """highest learning rate; not scaled by the number of workers"""
    min_lr: float = 1e-6
    """last learning rate"""
    warmup_lr: float = 1e-6
    """first learning rate"""
    warmup_epochs: int = 2
    """warmup epochs of the learning rate"""
    warmup_updates: int = 0
    """with --updates: warmup updates, instead of --warmup-epochs"""
    sched: str = "cosine"
    """schedule, by timm's name"""
    weight_decay: float = 0.05
    """weight decay of matrices; biases, norms and positions have none"""
    decay_all: bool = False
    """apply weight decay to all parameters, as fairseq's optimizers do"""
    clip_grad: float = 0.0
    """largest gradient norm; 0: no limit"""
    smoothing: float = 0.1
    """label smoothing"""
    mixup: float = 0.0
    """alpha of mixup"""
    cutmix: float = 0.0
    """alpha of cutmix"""
    drop: float = 0.0
    """dropout after embedding and sublayers"""
    attn_drop: float = 0.0
    """dropout on attention weights"""
    act_drop: float = 0.0
    """dropout on hidden units (mFormer: 0.1)"""
    drop_path: float = 0.0
    """stochastic depth (mFormer: 0.1)"""
    scale: float = 0.5
    """smallest fraction of an image's area in a random crop"""
    aa: str = ""
    """automatic augmentation, by timm's name (mFormer: rand-m9-mstd0.5-inc1)"""
    color_jitter: float = 0.0
    """strength of colour jitter (mFormer: 0.4)"""
    reprob: float = 0.0
    """probability of random erasing (mFormer: 0.25)"""
    ema: float = 0.0
    """decay of a moving average of the weights; 0: none"""
    img_size: int = 0
    """height and width; default: the model's"""
    precision: str = "fp32"
    """fp32, tf32 (NVIDIA from Ampere on), bf16 or fp16 (autocast; fp16 with a scaled loss)"""
    channels_last: bool = False
    """use channels-last memory format"""
    torchcompile: str = field(default="", metadata={"alone": "inductor"})
    """static networks: compile with torch.compile, by this backend (if omitted: inductor)"""
    grad_checkpointing: bool = False
    """recompute layers in the backward pass to save memory"""
    seed: int = 1
    """random seed of weights, data order, augmentation and architectures"""
    workers: int = 0
    """image loader processes per worker of torchrun"""
    pin_mem: bool = False
    """read images into pinned memory"""
    no_prefetcher: bool = False
    """on CUDA: prepare images in the loader processes, without timm's prefetcher"""
    persistent_workers: bool = False
    """keep loader processes between epochs; a resumed run then draws other augmentation"""
    log_interval: int = 50
    """updates between loss readings, which synchronise the device"""
    keep_every: int = 0
    """updates between networks kept as kept/UPDATES.pt in the run folder; 0: none"""
    device: str = "cpu"
    """cpu, cuda, cuda:1; under torchrun cpu or cuda"""

    def __post_init__(self) -> None:
        if self.sampling not in SAMPLINGS:
            raise unknown_choice("way of sampling (--sampling)", self.sampling, SAMPLINGS)
        if self.precision not in PRECISIONS:
            raise unknown_choice("precision (--precision)", self.precision, PRECISIONS)
        check_ranges(self, _RANGES)
        for wrong, message in self._conflicts():
            if wrong:
                raise ConfigError(message)

    def changed(self, names: Sequence[str]) -> list[str]:
        """Return the named settings that differ from their default."""
        defaults = {field.name: field.default for field in fields(self)}
        return [name for name in defaults if name in names and getattr(self, name) != defaults[name]]

    def _conflicts(self) -> Iterator[tuple[object, str]]:
        def flag(names: list[str]) -> str:
            return f"--{names[0].replace('_', '-')}" if names else ""

        network = flag(self.changed(_OF_MODEL))
        warmup, updates, size = self.warmup_updates, self.updates, self.batch_size
        yield (
            not self.model and not self.init,
            ("neither --model nor --init; give the name of a model, or a checkpoint to continue from"),
        )
        yield (
            not self.model and network,
            (f"{network} without --model: the checkpoint of --init sets it; leave it out"),
        )
        betas = self.opt_betas
        yield (
            betas and (len(betas) != 2 or not all(0 <= beta < 1 for beta in betas)),
            (f"--opt-betas {' '.join(map(str, betas))}; expected two numbers from 0 to below 1, e.g. 0.9 0.998"),
        )
        yield warmup and not updates, (f"--warmup-updates {warmup} without --updates; give both, or --warmup-epochs")
        yield updates and warmup >= updates, f"--warmup-updates {warmup} of --updates {updates}; expected fewer"
        yield (
            (self.mixup or self.cutmix) and size % 2,
            (f"--batch-size {size} with mixup or cutmix; expected an even number"),
        )
        names = [field.name for field in fields(self) if field.name.startswith(("distill_", "teacher_"))]
        option, largest = flag(self.changed(names)), self.teacher == LARGEST
        yield option and not self.teacher, f"{option} without --teacher; give a trained network, or leave it out"
        yield (
            largest and self.sampling != "sandwich",
            ("--teacher largest without --sampling sandwich, which trains it in each update"),
        )
        layers = self.distill_hidden or self.distill_attention
        yield (
            self.teacher_cache and (largest or layers),
            (
                "--teacher-cache is neither for --teacher largest, whose weights change, nor for --distill-hidden and"
                " --distill-attention; leave it out"
            ),
        )
        yield (
            self.teacher_cache and self.persistent_workers,
            ("--teacher-cache with --persistent-workers, which draw other images in a resumed run; leave one out"),
        )
        yield (
            self.teacher_top_k and not self.teacher_cache,
            ("--teacher-top-k without --teacher-cache; give both, or leave it out"),
        )
        yield (
            layers and self.torchcompile,
            ("--distill-hidden and --distill-attention with --torchcompile; leave one out"),
        )


def parse(arguments: Sequence[str] | None = None) -> TrainConfig:
    """Parse a command line; invalid options end the process with a message."""
    return read_options(TrainConfig, parser().parse_args(arguments))


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser("python -m timm_ext.train", description="Train an image model or a supernet.")
    add_options(result, TrainConfig)
    return result
