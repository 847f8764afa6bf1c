"""Language models: fairseq's task ``language_modeling`` with networks of :mod:`nas_core.models.language`.

Importing this package registers the models and the task ``supernet_language_modeling`` with fairseq.
"""

from fairseq_ext.language import model, task

__all__ = ["model", "task"]
