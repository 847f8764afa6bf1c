"""Distillation in fairseq. Importing this package registers the criteria with fairseq."""

from fairseq_ext.distillation import criterion  # noqa: F401
