"""What of a translation model goes into exported files: its parts, dictionaries and special tokens."""

from __future__ import annotations

import io
from typing import Any

from fairseq_ext.model import TranslationModel
from nas_core.export import Exportable
from nas_core.export.translation import translation_info, translation_parts
from nas_core.space import Architecture


def exportable(model: TranslationModel, task: Any, architecture: Architecture) -> Exportable:
    """The subnet of ``architecture``, with inherited weights, and all that decoding it needs."""
    source, target = model.max_positions()
    parts = translation_parts(model.net, architecture, source, target)
    languages = {"source": task.cfg.source_lang, "target": task.cfg.target_lang}
    words = {"source": task.source_dictionary, "target": task.target_dictionary}
    special = words["target"]
    info = {
        **translation_info(*parts),
        "architecture": architecture.to_dict(),
        "languages": languages,
        "tokens": {"bos": special.bos(), "pad": special.pad(), "eos": special.eos(), "unk": special.unk()},
        "padding": {"source": "left" if task.cfg.left_pad_source else "right"},
        "dictionaries": {side: _file(side, languages) for side in words},
        "dictionary_first_index": special.nspecial,
    }
    return Exportable(parts, info, {_file(side, languages): _text(words[side]) for side in words})


def _file(side: str, languages: dict[str, Any]) -> str:
    return f"dict.{side}.{languages[side]}.txt"


def _text(dictionary: Any) -> str:
    """A line for each token from ``nspecial`` on: the token, a space, how often it was counted."""
    text = io.StringIO()
    dictionary.save(text)
    return text.getvalue()
