"""``--task supernet_translation``, ``supernet_language_modeling`` and ``supernet_masked_lm``."""
# Annotations are not postponed: fairseq reads option types.

import logging
import math
from argparse import SUPPRESS, ArgumentError, ArgumentParser
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from fairseq import metrics
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.tasks import TASK_REGISTRY, register_task
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from fairseq_ext.compat import one_line_errors
from fairseq_ext.data import options_of
from fairseq_ext.language import LanguageModel
from fairseq_ext.masked_lm import MaskedLMModel
from fairseq_ext.model import TranslationModel
from fairseq_ext.supernet_model import SupernetModel
from nas_core.checks import Range
from nas_core.errors import ConfigError
from nas_core.options import check_ranges
from nas_core.space import Architecture
from nas_core.supernet.holder import SubnetHolder
from nas_core.supernet.sampling import sandwich, validation_set

logger = logging.getLogger(__name__)

_LOSSES = ("loss", "nll_loss", "distill_loss")
"""Values that are logged as means over subnets."""
_SUBNET = "subnet:"
"""Prefix of the names of logged losses of single subnets."""
_SAMPLING = ChoiceEnum(["spos", "sandwich"])
_SAMPLING_HELP = (
    "subnets trained per update: spos (a random one), or sandwich (also the largest and the smallest, on the same"
    " batch; the loss is the mean over the three subnets)"
)
_SELECT = ChoiceEnum(["mean", "smallest", "largest"])


@dataclass
class SupernetTaskConfig(FairseqDataclass):  # type: ignore[misc]
    """Options of supernet training, in addition to fairseq's task."""

    supernet_sampling: _SAMPLING = field(  # type: ignore[valid-type]
        default="spos",
        metadata={"help": f"same as --sampling: {_SAMPLING_HELP}"},
    )
    valid_random: int = field(
        default=2,
        metadata={"help": "number of validated random subnets, in addition to the smallest and the largest"},
    )
    select_checkpoint: _SELECT = field(  # type: ignore[valid-type]
        default="mean",
        metadata={
            "help": "validation loss that selects checkpoint_best.pt: mean over subnets, smallest subnet (as in the"
            " code of HAT and Mixture-of-Supernets), or largest subnet"
        },
    )


class SupernetTask:
    """Mixin for training and validation of supernets; inherit it before fairseq's task.

    ``spos`` (Mixture-of-Supernets, equation 1) trains one random architecture per update. ``sandwich`` (equation 2)
    also trains the largest and the smallest on the same batch. The gradient is the mean over the three, as in the
    authors' code for translation; equation 2 and their code for BERT use the sum.

    Validation reports the loss of the smallest, the largest and some random architectures.
    """

    cfg: Any
    model_type: ClassVar[type[SupernetModel[Any]]]
    plain: ClassVar[str]
    """Name of fairseq's task."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cfg = options_of(self)  # tasks of one language keep them under another name
        self._subnets: dict[Architecture, Any] = {}

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        # fairseq has another --sampling, for generation.
        super().add_args(parser)  # type: ignore[misc]
        parser.set_defaults(log_interval=10)
        with suppress(ArgumentError):
            choices = [choice.value for choice in _SAMPLING]
            parser.add_argument(
                "--sampling", dest="supernet_sampling", choices=choices, default=SUPPRESS, help=_SAMPLING_HELP
            )

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        model = super().build_model(cfg, from_checkpoint)  # type: ignore[misc]
        with one_line_errors():
            if not isinstance(model, self.model_type):
                raise ConfigError(
                    f"--task supernet_{self.plain} needs --arch {self.model_type.trained_by}; give --task {self.plain}"
                    " for other models"
                )
            check_ranges(self.cfg, {"valid_random": Range(0)})
        names = ", ".join(self.validation_subnets(model))
        logger.info("validation evaluates the subnets %s; 'loss' is their %s", names, self.cfg.select_checkpoint)
        if self.cfg.supernet_sampling == "sandwich" and model.space.cardinality() > 1:
            ends = {"space": "those of the search space", "hat": "as in HAT's code"}[_extremes(model)]
            logger.info("each update trains a random subnet, the largest and the smallest (%s)", ends)
        return model

    def begin_valid_epoch(self, epoch: int, model: Any) -> None:
        super().begin_valid_epoch(epoch, model)  # type: ignore[misc]
        self._subnets = {}

    def validation_subnets(self, model: SubnetHolder[Any]) -> dict[str, Architecture]:
        """Return the architectures to validate, by name."""
        return validation_set(model.space, self.cfg.valid_random, extremes=_extremes(model))

    def train_step(
        self,
        sample: dict[str, Any],
        model: Any,
        criterion: Any,
        optimizer: Any,
        update_num: int,
        ignore_grad: bool = False,
    ) -> tuple[Any, Any, dict[str, Any]]:
        self._subnets = {}
        supernet = _unwrap(model)
        if self.cfg.supernet_sampling == "spos" or supernet.space.cardinality() == 1:
            return super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)  # type: ignore[misc,no-any-return]
        model.train()
        model.set_num_updates(update_num)
        named = sandwich(supernet.space, supernet.train_architecture, _extremes(supernet))
        if getattr(criterion, "largest_first", False):  # the teacher of the others
            named = {"largest": named["largest"], **named}
        outputs = {}
        total, size = 0.0, 0
        with criterion.one_batch() if hasattr(criterion, "one_batch") else nullcontext():
            for index, (name, architecture) in enumerate(named.items()):
                last = index == len(named) - 1
                # gradients of the sandwich are exchanged between workers once, with its last subnet
                sync = nullcontext() if last or not hasattr(model, "no_sync") else model.no_sync()
                with supernet.use_architecture(architecture), sync:
                    device = str(sample["target"].device.type)
                    with torch.amp.autocast(device, enabled=isinstance(optimizer, AMPOptimizer)):
                        loss, size, outputs[name] = criterion(model, sample)
                    loss = loss / len(named) * (0 if ignore_grad else 1)
                    optimizer.backward(loss)
                total = total + loss.detach()
        return total, size, _combine(outputs, "mean")

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Any, Any, dict[str, Any]]:
        supernet = _unwrap(model)
        outputs = {}
        loss, size = None, 0
        for name, architecture in self.validation_subnets(supernet).items():
            model.eval()
            step = super().valid_step if name == "largest" else _criterion_only  # type: ignore[misc]
            if architecture not in self._subnets:  # experts are mixed once for all batches
                with torch.no_grad():
                    self._subnets[architecture] = supernet.select(architecture)
            with supernet.use_subnet(architecture, self._subnets[architecture]):
                loss, size, outputs[name] = step(sample, model, criterion)
        return loss, size, _combine(outputs, self.cfg.select_checkpoint)

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        super().reduce_metrics(logging_outputs, criterion)  # type: ignore[misc]
        total = sum(float(log.get("sample_size", 0)) for log in logging_outputs)
        for key in sorted({key for log in logging_outputs for key in log if key.startswith(_SUBNET)}):
            losses = (log.get(key, 0) for log in logging_outputs)
            mean = sum(loss.double() if torch.is_tensor(loss) else float(loss) for loss in losses) / max(total, 1)
            metrics.log_scalar(f"{key.removeprefix(_SUBNET)}_loss", mean / math.log(2), total, round=3)


def _extremes(model: Any) -> str:
    return str(getattr(model.args, "extremes", "space"))


def _criterion_only(sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Any, Any, dict[str, Any]]:
    with torch.no_grad():
        return criterion(model, sample)  # type: ignore[no-any-return]


def _combine(outputs: dict[str, dict[str, Any]], select: str) -> dict[str, Any]:
    """Merge the logging outputs of subnets: counts of one, losses by ``select``, and the loss of each."""
    combined = dict(outputs.get("largest") or next(iter(outputs.values())))
    for key in _LOSSES:
        values = {name: output[key] for name, output in outputs.items() if key in output}
        if values:
            combined[key] = values[select] if select in values else sum(values.values()) / len(values)
    for name, output in outputs.items():
        combined[f"{_SUBNET}{name}"] = output["loss"]
    return combined


def _unwrap(model: Any) -> SubnetHolder[Any]:
    while not isinstance(model, SubnetHolder) and hasattr(model, "module"):
        model = model.module
    assert isinstance(model, SubnetHolder)
    return model


# -- fairseq's tasks ---------------------------------------------------------------------------------------------------


@dataclass
class SupernetTranslationConfig(SupernetTaskConfig, TranslationConfig):  # type: ignore[misc]
    """Options of ``--task supernet_translation``."""


@dataclass
class SupernetLanguageModelingConfig(SupernetTaskConfig, LanguageModelingConfig):  # type: ignore[misc]
    """Options of ``--task supernet_language_modeling``."""


@dataclass
class SupernetMaskedLMConfig(SupernetTaskConfig, MaskedLMConfig):  # type: ignore[misc]
    """Options of ``--task supernet_masked_lm``."""


class SupernetTranslationTask(SupernetTask, TranslationTask):  # type: ignore[misc]
    """Translation with a supernet."""

    model_type, plain = TranslationModel, "translation"


class SupernetLanguageModelingTask(SupernetTask, LanguageModelingTask):  # type: ignore[misc]
    """Language modelling with a supernet."""

    model_type, plain = LanguageModel, "language_modeling"


class SupernetMaskedLMTask(SupernetTask, MaskedLMTask):  # type: ignore[misc]
    """Masked language modelling with a supernet."""

    model_type, plain = MaskedLMModel, "masked_lm"


for _task, _config in (
    (SupernetTranslationTask, SupernetTranslationConfig),
    (SupernetLanguageModelingTask, SupernetLanguageModelingConfig),
    (SupernetMaskedLMTask, SupernetMaskedLMConfig),
):
    if (_name := f"supernet_{_task.plain}") not in TASK_REGISTRY:  # this module may be imported twice
        register_task(_name, dataclass=_config)(_task)
