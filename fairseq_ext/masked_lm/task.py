"""fairseq's task of masked language models, for supernets.

Annotations are not postponed in this module: fairseq reads the options from the field types.
"""

from dataclasses import dataclass

from fairseq.tasks import TASK_REGISTRY, register_task
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask

from fairseq_ext.masked_lm.model import MaskedLMModel
from fairseq_ext.training.supernet_task import SupernetTask, SupernetTaskConfig


@dataclass
class SupernetMaskedLMConfig(SupernetTaskConfig, MaskedLMConfig):  # type: ignore[misc]
    """fairseq's options of masked language models, and those of a supernet's training."""


class SupernetMaskedLMTask(SupernetTask, MaskedLMTask):  # type: ignore[misc]
    """fairseq's task of masked language models for a supernet, trained and validated as :class:`SupernetTask` says."""

    model_type = MaskedLMModel
    advice = (
        "--task supernet_masked_lm needs --arch mos_roberta*, mos_bert*, supershaper_bert* or another of theirs; use"
        " --task masked_lm for other models"
    )


if "supernet_masked_lm" not in TASK_REGISTRY:
    register_task("supernet_masked_lm", dataclass=SupernetMaskedLMConfig)(SupernetMaskedLMTask)
