"""Training with a teacher inside fairseq."""

from fairseq_ext.distillation.criterion import (
    DistilledCrossEntropy,
    DistilledLabelSmoothedCrossEntropy,
    DistilledMaskedLm,
)

__all__ = ["DistilledCrossEntropy", "DistilledLabelSmoothedCrossEntropy", "DistilledMaskedLm"]
