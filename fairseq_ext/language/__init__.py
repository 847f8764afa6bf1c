"""Language models: fairseq's task ``language_modeling`` with networks of :mod:`nas_core.models.language`.

Importing this package registers the models with fairseq.
"""

from fairseq_ext.language import model

__all__ = ["model"]
