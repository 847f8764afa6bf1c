"""Training with a teacher inside fairseq: criteria that add what a trained network says to their own loss."""

from fairseq_ext.distillation.criteria import (
    DistilledCrossEntropy,
    DistilledLabelSmoothedCrossEntropy,
    DistilledMaskedLm,
)

__all__ = ["DistilledCrossEntropy", "DistilledLabelSmoothedCrossEntropy", "DistilledMaskedLm"]
