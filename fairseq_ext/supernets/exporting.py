"""Export of networks, with dictionaries and special tokens, for ONNX and ``torch.export``."""

from __future__ import annotations

import io
from typing import Any

from fairseq_ext.model import TranslationModel
from nas_core.export.parts import Exportable, ExportModule
from nas_core.models.language.export import language_info, language_parts
from nas_core.models.translation.export import translation_info, translation_parts
from nas_core.space import Architecture


def translation_exportable(model: TranslationModel, task: Any, architecture: Architecture) -> Exportable:
    """Return the encoder and decoder of a subnet, and the information needed for decoding."""
    source, target = (int(getattr(model.args, f"max_{side}_positions")) for side in ("source", "target"))
    parts = translation_parts(model.net, architecture, source, target)
    languages = {"source": task.cfg.source_lang, "target": task.cfg.target_lang}
    dictionaries = {"source": task.source_dictionary, "target": task.target_dictionary}
    files = {side: f"dict.{side}.{language}.txt" for side, language in languages.items()}
    info = {
        **translation_info(*parts),
        "architecture": architecture.to_dict(),
        "languages": languages,
        "tokens": _special_tokens(dictionaries["target"]),
        "padding": {"source": "left" if task.cfg.left_pad_source else "right"},
        "dictionaries": files,
        "dictionary_first_index": dictionaries["target"].nspecial,
    }
    return Exportable(parts, info, {files[side]: _text(dictionaries[side]) for side in dictionaries})


def language_exportable(model: Any, task: Any, architecture: Architecture) -> Exportable:
    """Return the networks of a subnet that read a prompt and generate a token, and the information for generation."""
    dictionary, net = task.source_dictionary, model.net
    parts = language_parts(net, architecture, net.context_length)
    info = {
        **language_info(*parts),
        "architecture": architecture.to_dict(),
        "tokens": _special_tokens(dictionary),
        "starts_with": dictionary.bos() if getattr(task.args, "add_bos_token", False) else dictionary.eos(),
        "dictionary": "dict.txt",
        "dictionary_first_index": dictionary.nspecial,
    }
    return Exportable(parts, info, {"dict.txt": _text(dictionary)})


def _text(dictionary: Any) -> str:
    text = io.StringIO()
    dictionary.save(text)
    return text.getvalue()


def masked_lm_exportable(task: Any, part: ExportModule, architecture: Architecture) -> Exportable:
    """Return ``part`` (encoder with the head of its task), and the information needed for inference."""
    dictionary, classify = task.source_dictionary, hasattr(task.cfg, "classification_head_name")
    (max_length,) = (dim.largest for dim in part.dims if dim.name == "length")
    info = {
        "kind": "sentence_prediction" if classify else "masked_lm",
        "architecture": architecture.to_dict(),
        "vocabulary": len(dictionary),
        "limits": {"tokens": max_length},
        "tokens": {**_special_tokens(dictionary), "mask": dictionary.index("<mask>")},
        "padding": "right: the first token tells the class" if classify else "any side; its outputs mean nothing",
        "starts_with": task.cfg.init_token if classify else dictionary.bos(),
        "ends_with": dictionary.eos(),
        "dictionary": "dict.txt",
        "dictionary_first_index": dictionary.nspecial,
    }
    if classify:
        labels = task.label_dictionary.symbols[task.label_dictionary.nspecial :][: task.cfg.num_classes]
        info |= {"classes": None if task.cfg.regression_target else labels, "separator": task.cfg.separator_token}
    return Exportable((part,), info, {"dict.txt": _text(dictionary)})


def _special_tokens(dictionary: Any) -> dict[str, int]:
    return {"bos": dictionary.bos(), "pad": dictionary.pad(), "eos": dictionary.eos(), "unk": dictionary.unk()}
