"""The command line's host for fairseq's checkpoints, logs and dictionaries."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_ext.compat import prepare_fairseq
from fairseq_ext.training_log import training_curves, training_logs
from nas_core.files.archives import archive_pickle
from nas_core.precision import PRECISIONS
from nas_core.supernet.host import Host, Supernet

if TYPE_CHECKING:
    from nas_core.supernet.elastic.conversion import Trained


class FairseqHost(Host):
    """fairseq as a host of supernets."""

    name = "fairseq"
    precisions = PRECISIONS
    training_logs = staticmethod(training_logs)
    training_curves = staticmethod(training_curves)

    def recognises(self, checkpoint: Path) -> bool:
        """Return whether the archive's pickle looks like fairseq's, without reading tensors."""
        content = archive_pickle(checkpoint)
        return b"optimizer_history" in content and b"args" in content

    def open(self, checkpoint: Path, **options: Any) -> Supernet:
        _prepare()
        from fairseq_ext.checkpoint import settings_errors
        from fairseq_ext.supernets.supernet import open_supernet

        with settings_errors(Path(checkpoint)):
            return open_supernet(Path(checkpoint), **options)

    def open_exportable(self, checkpoint: Path, **options: Any) -> Supernet:
        """Open a model of this plug-in, or fairseq's RoBERTa."""
        _prepare()
        from fairseq_ext.checkpoint import settings_errors
        from fairseq_ext.supernets.exporting import is_masked_lm, open_masked_lm

        path = Path(checkpoint)
        with settings_errors(path):
            return open_masked_lm(path, options.get("data")) if is_masked_lm(path) else self.open(path, **options)

    def open_trained(self, checkpoint: Path, **options: Any) -> Trained:
        _prepare()
        from fairseq_ext.checkpoint import settings_errors
        from fairseq_ext.elastic.trained import Request, open_trained

        with settings_errors(Path(checkpoint)):
            return open_trained(Path(checkpoint), Request(**options))

    def vocabularies(self, data: Path) -> tuple[int, int] | None:
        """Return the sizes of the source and target dictionaries, equal for a language model."""
        if not any(data.glob("dict*.txt")):
            return None
        _prepare()
        from fairseq_ext.data import vocabulary_sizes

        return vocabulary_sizes(data)


def _prepare() -> None:
    import fairseq_ext  # noqa: F401  registers models and tasks

    prepare_fairseq()
    for name in ("fairseq", "fairseq_ext"):
        logging.getLogger(name).setLevel(logging.WARNING)


HOST = FairseqHost()
