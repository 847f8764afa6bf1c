"""Export of networks, with dictionaries and special tokens, for ONNX and ``torch.export``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from fairseq_ext.checkpoint import read_state
from fairseq_ext.compat import in_groups
from fairseq_ext.elastic.trained import Request, TrainedMaskedLM, model_name, settings_of
from fairseq_ext.masked_lm import stored_heads
from fairseq_ext.model import TranslationModel
from nas_core.errors import CheckpointError
from nas_core.export.parts import Exportable, Part
from nas_core.models.language.export import language_info, language_parts
from nas_core.models.masked_lm.export import encoder_part
from nas_core.models.translation.export import translation_info, translation_parts
from nas_core.space import Architecture, Choice, SearchSpace


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
        "tokens": _special(dictionaries["target"]),
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
        "tokens": _special(dictionary),
        "starts_with": dictionary.bos() if getattr(task.args, "add_bos_token", False) else dictionary.eos(),
        "dictionary": "dict.txt",
        "dictionary_first_index": dictionary.nspecial,
    }
    return Exportable(parts, info, {"dict.txt": _text(dictionary)})


def _text(dictionary: Any) -> str:
    text = io.StringIO()
    dictionary.save(text)
    return text.getvalue()


class MaskedLM:
    """Trained network of ``--arch roberta*`` that can be exported."""

    def __init__(self, trained: Any) -> None:
        self._trained, largest = trained, trained.space.largest()
        sizes = {
            "encoder.layers": largest["layers"],
            "encoder.embed_dim": largest["embed_dim"],
            "encoder.ffn_dim": largest["ffn_dim"][0],
            "encoder.self_heads": largest["heads"][0],
        }
        self.space = SearchSpace("roberta", [Choice(name, ((number,),)) for name, number in sizes.items()])

    def exportable(self, architecture: Architecture) -> Exportable:
        trained = self._trained
        head = getattr(trained.task.cfg, "classification_head_name", None)
        part = encoder_part(trained.net, trained.space.largest(), head, trained.longest())
        return masked_lm_exportable(trained.task, part, self.space.validate(architecture))


def masked_lm_exportable(task: Any, part: Part, architecture: Architecture) -> Exportable:
    """Return ``part`` (encoder with the head of its task), and the information needed for inference."""
    dictionary, classify = task.source_dictionary, hasattr(task.cfg, "classification_head_name")
    (longest,) = (dim.largest for dim in part.dims if dim.name == "length")
    info = {
        "kind": "sentence_prediction" if classify else "masked_lm",
        "architecture": architecture.to_dict(),
        "vocabulary": len(dictionary),
        "limits": {"tokens": longest},
        "tokens": {**_special(dictionary), "mask": dictionary.index("<mask>")},
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


def open_roberta(path: Path, data: str | None) -> MaskedLM | None:
    """Open a checkpoint of fairseq's ``roberta``; return None for a checkpoint of this package.

    Raises:
        CheckpointError: the checkpoint belongs to another model, or lacks the classification head of its task.
    """
    state = in_groups(read_state(path, mmap=True))
    settings = settings_of(state, path)
    if "search_space_json" in settings:
        return None
    if model_name(settings) != "roberta":
        raise CheckpointError(
            f"{path} was trained with --arch {settings.get('arch')}, which cannot be exported; expected mos_*, hat_*,"
            " mformer_* or roberta*"
        )
    heads = stored_heads(state["model"], "classification_heads.")  # fairseq adds a random one that is missing
    trained = TrainedMaskedLM(path, state, Request(data=data))
    head = getattr(trained.task.cfg, "classification_head_name", None)
    if head is not None and head not in heads:
        raise CheckpointError(f"{path} has no weights of classification head {head!r}; give a fine-tuned network")
    return MaskedLM(trained)


def _special(dictionary: Any) -> dict[str, int]:
    return {"bos": dictionary.bos(), "pad": dictionary.pad(), "eos": dictionary.eos(), "unk": dictionary.unk()}
