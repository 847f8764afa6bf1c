"""``--task supernet_translation``: translation with a supernet's ways of training and of validating.

Annotations are not postponed in this module: fairseq reads the options from the field types.
"""

from dataclasses import dataclass

from fairseq.tasks import TASK_REGISTRY, register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from fairseq_ext.model import TranslationModel
from fairseq_ext.training.supernet_task import SupernetTask, SupernetTaskConfig


@dataclass
class SupernetTranslationConfig(SupernetTaskConfig, TranslationConfig):  # type: ignore[misc]
    """fairseq's options of translation, and those of a supernet's training."""


class SupernetTranslationTask(SupernetTask, TranslationTask):  # type: ignore[misc]
    """fairseq's translation task for a supernet, trained and validated as :class:`SupernetTask` says."""

    model_type = TranslationModel
    advice = (
        "--task supernet_translation needs --arch mos_transformer*, hat_transformer*, mformer_wmt14* or"
        " mformer_translation*; use --task translation for other models"
    )


if "supernet_translation" not in TASK_REGISTRY:
    register_task("supernet_translation", dataclass=SupernetTranslationConfig)(SupernetTranslationTask)
