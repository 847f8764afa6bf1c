"""Adapter of fairseq for the commands of ``nas-ext``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairseq_ext.compat import prepare_fairseq
from nas_core.files.archives import archive_pickle
from nas_core.precision import PRECISIONS
from nas_core.supernet.host import Host, Supernet


class FairseqHost(Host):
    """Host of fairseq models; a checkpoint is a file of ``fairseq-train``."""

    name = "fairseq"
    precisions = PRECISIONS

    def recognises(self, checkpoint: Path) -> bool:
        content = archive_pickle(checkpoint)
        return b"optimizer_history" in content and b"args" in content

    def open(self, checkpoint: Path, **options: Any) -> Supernet:
        with _opening(checkpoint):
            from fairseq_ext.supernets.supernet import open_supernet

            return open_supernet(checkpoint, **options)

    def open_trained(self, checkpoint: Path, **options: Any) -> Any:
        with _opening(checkpoint):
            from fairseq_ext.elastic.trained import Request, open_trained

            return open_trained(checkpoint, Request(**options))

    def vocabularies(self, data: Path) -> tuple[int, int] | None:
        if not any(data.glob("dict*.txt")):  # before fairseq is imported
            return None
        with _opening(data):
            from fairseq_ext.data import vocabulary_sizes

            return vocabulary_sizes(data)


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    """Import fairseq without its log messages; raise a CheckpointError if ``path`` has damaged settings."""
    import fairseq_ext  # noqa: F401
    from fairseq_ext.checkpoint import settings_errors

    prepare_fairseq()
    for name in ("fairseq", "fairseq_ext"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with settings_errors(path):
        yield


HOST = FairseqHost()
