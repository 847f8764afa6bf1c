"""``--task supernet_language_modeling``: language modelling with a supernet's ways of training and of validating.

Annotations are not postponed in this module: fairseq reads the options from the field types.
"""

from dataclasses import dataclass
from typing import Any

from fairseq.tasks import TASK_REGISTRY, register_task
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask

from fairseq_ext.language.model import LanguageModel
from fairseq_ext.training.supernet_task import SupernetTask, SupernetTaskConfig


@dataclass
class SupernetLanguageModelingConfig(SupernetTaskConfig, LanguageModelingConfig):  # type: ignore[misc]
    """fairseq's options of language modelling, and those of a supernet's training."""


class SupernetLanguageModelingTask(SupernetTask, LanguageModelingTask):  # type: ignore[misc]
    """fairseq's task of language modelling for a supernet, trained and validated as :class:`SupernetTask` says."""

    model_type = LanguageModel
    advice = (
        "--task supernet_language_modeling needs --arch mos_transformer_lm*, hat_transformer_lm* or mformer_language*;"
        " use --task language_modeling for other models"
    )

    def __init__(self, args: Any, dictionary: Any, output_dictionary: Any = None, targets: Any = None) -> None:
        super().__init__(args, dictionary, output_dictionary, targets)
        self.cfg = args  # which fairseq's tasks of this age keep under another name


if "supernet_language_modeling" not in TASK_REGISTRY:
    register_task("supernet_language_modeling", dataclass=SupernetLanguageModelingConfig)(SupernetLanguageModelingTask)
