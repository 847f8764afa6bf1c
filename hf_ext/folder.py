"""Reading and atomic writing of Hugging Face model folders."""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel, PreTrainedModel

from hf_ext import per_layer
from hf_ext.families import FAMILIES, head_groups
from nas_core.errors import CheckpointError, DataError, NasExtError
from nas_core.files.reading import read_json
from nas_core.files.writing import os_errors, write_json

CONFIG, _TOKENIZER, WEIGHTS, SETTINGS = "config.json", "tokenizer_config.json", "model.safetensors", "nas_ext.json"
_SHARDS = "model.safetensors.index.json"
_CODE = "modeling_per_layer"
_CONFIG = """

from transformers import {config}, {parents}


class PerLayerConfig({config}):
    model_type = "{kind}"
"""
_MODEL = """

class PerLayer{ending}({parent}):
    config_class = PerLayerConfig

    def __init__(self, config, *args, **kwargs):
        super().__init__(config, *args, **kwargs)
        resize_layers(self, "{layers}")
        self.post_init()
"""
_NOT_COPIED = (CONFIG, SETTINGS, _SHARDS, "trainer_state.json", "README.md")
_COPIED = (".json", ".txt", ".model", ".spm")
TABLES = {"translation": "source, tab and target", "class": "text, tab and class"}
"""Head whose data are ``.tsv`` files -> content of a line."""

DAMAGED = (SafetensorError, StrictDataclassError, OSError, ValueError, RuntimeError, TypeError, LookupError,
           AttributeError, ImportError)  # fmt: skip
"""Exceptions that transformers raises for a damaged folder."""


def reason(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def read_config(folder: Path) -> dict[str, Any]:
    """Read ``config.json``, and check that the folder contains a supported model."""
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict):
        raise CheckpointError(
            f"{folder / CONFIG} is not a model configuration; give a folder that save_pretrained wrote"
        )
    for name in (CONFIG, _TOKENIZER):
        content = read_json(folder / name) if (folder / name).is_file() else {}
        if isinstance(content, dict) and "auto_map" in content:
            raise CheckpointError(
                f"{folder} needs custom code (auto_map in {name}), which is not executed; give a model and a tokenizer"
                " of transformers"
            )
    if (kind := config.get("model_type")) not in [*FAMILIES]:
        raise CheckpointError(
            f"{folder} has model_type {kind!r}, which cannot be converted to a supernet; expected one of"
            f" {', '.join(FAMILIES)}"
        )
    if config.get("quantization_config"):
        raise CheckpointError(f"{folder} holds quantized weights; give the model before quantization")
    for name in ("is_decoder", "add_cross_attention"):
        if config.get(name):
            raise CheckpointError(
                f"{folder} holds a decoder ({name} is {config[name]} in {CONFIG}); expected an encoder, with {name}"
                " false"
            )
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise CheckpointError(
            f"{folder} has position_embedding_type {config['position_embedding_type']!r}; expected 'absolute'"
        )
    if not (folder / WEIGHTS).is_file() and not (folder / _SHARDS).is_file():
        pickled = next((file.name for file in sorted(folder.glob("pytorch_model*.bin"))), None)
        missing = f"its weights are a pickle, {pickled}, which is not read" if pickled else "it has no weights"
        raise CheckpointError(f"{folder} has no {WEIGHTS}: {missing}; save the model again with save_pretrained")
    return config


def read_model(folder: Path) -> PreTrainedModel:
    """Load the model of a folder in float32 and evaluation mode."""
    settings = read_config(folder)
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        config.return_dict, config.output_attentions, config.output_hidden_states = True, False, False
        options: dict[str, Any] = {"config": config, "dtype": torch.float32, "output_loading_info": True}
        options |= {"local_files_only": True, "use_safetensors": True, "ignore_mismatched_sizes": True}
        options["attn_implementation"] = "sdpa"  # one named in the folder may be code from the Hub
        kind = _class_of(settings, type(config))
        with _quiet():
            model, info = kind.from_pretrained(folder, **options)
            if info["missing_keys"] and all("pooler." in name for name in info["missing_keys"]):
                model, info = kind.from_pretrained(folder, **options, add_pooling_layer=False)
    except DAMAGED as error:
        raise CheckpointError(
            f"{folder} cannot be loaded by transformers ({reason(error)}); give an undamaged copy"
        ) from None
    classes = FAMILIES[settings["model_type"]].classes
    if not type(model).__name__.endswith(classes) or type(model).__name__.endswith("ForMultipleChoice"):
        raise CheckpointError(
            f"{folder} holds a {type(model).__name__}, which cannot be converted to a supernet; expected a class whose"
            f" name ends with {' or '.join(classes)}"
        )
    if not isinstance(getattr(config, "image_size", 0), int) or not isinstance(getattr(config, "patch_size", 0), int):
        raise CheckpointError(
            f"{folder / CONFIG} has image_size {getattr(config, 'image_size', None)} and patch_size"
            f" {getattr(config, 'patch_size', None)}; expected integers: give a model with square images and patches"
        )
    if head_groups(config) < 1 or config.num_attention_heads % head_groups(config):
        raise CheckpointError(
            f"{folder / CONFIG} has {config.num_attention_heads} heads, which is no multiple of"
            f" {head_groups(config)}, the number of heads of keys; give an undamaged copy"
        )
    if len({*(getattr(config, "layer_types", None) or ())}) > 1:
        raise CheckpointError(
            f"{folder} has layers with different types of attention (layer_types in {CONFIG}), which supernets do not"
            " support; give a model with one type in all layers"
        )
    heads = {name: getattr(config, name) for name in FAMILIES[settings["model_type"]].head_numbers}
    if len({*heads.values()}) > 1:
        raise CheckpointError(
            f"{folder / CONFIG} has {heads}, which supernets do not support; give a model with the same number of heads"
            " in encoder and decoder"
        )
    if invalid := sorted({*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])}):
        raise CheckpointError(
            f"{folder / WEIGHTS} has no tensor {invalid[0]} of the shape that {CONFIG} requires; give an undamaged copy"
        )
    return model.eval()  # type: ignore[no-any-return]


def _class_of(settings: Mapping[str, Any], config: type[Any]) -> Any:
    for name in settings.get("architectures") or ():
        kind = getattr(transformers, str(name), None)
        if isinstance(kind, type) and issubclass(kind, PreTrainedModel) and kind.config_class is config:
            return kind
    return AutoModel


@contextmanager
def _quiet() -> Iterator[None]:
    level = transformers.logging.get_verbosity()
    progress_bars = transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(level)
        if progress_bars:
            transformers.logging.enable_progress_bar()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` if the block ends without an exception.

    Raises:
        NasExtError: the path exists, or cannot be written.
    """
    if path.exists():
        raise NasExtError(f"{path} exists already; give another path, or remove it")
    with os_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as temporary:
            inner = Path(temporary) / "model"
            inner.mkdir()
            yield inner
            inner.rename(path)


def save_model(model: PreTrainedModel, folder: Path) -> None:
    """Save a model; if its layers differ in size, with a model type and code of its own."""
    with _quiet():
        model.save_pretrained(folder)
    if hasattr(model.config, "layer_sizes"):
        _write_code(model, folder)


def _write_code(model: PreTrainedModel, folder: Path) -> None:
    config, trained = type(model.config).__name__, model.config.model_type
    parents = list(dict.fromkeys(type(network).__name__ for network in (model.base_model, model)))
    endings = {parent: parent.removeprefix(config.removesuffix("Config")) for parent in parents}
    kind, layers = f"per_layer_{trained}", FAMILIES[trained].layers[""]
    code = [inspect.getsource(per_layer), _CONFIG.format(config=config, parents=", ".join(parents), kind=kind)]
    code += [_MODEL.format(parent=parent, ending=ending, layers=layers) for parent, ending in endings.items()]
    (folder / f"{_CODE}.py").write_text("".join(code), encoding="utf-8")
    auto = {f"AutoModel{ending.removeprefix('Model')}": f"{_CODE}.PerLayer{ending}" for ending in endings.values()}
    auto["AutoConfig"] = f"{_CODE}.PerLayerConfig"
    changes = {"model_type": kind, "auto_map": auto, "architectures": [f"PerLayer{endings[parents[-1]]}"]}
    write_json(folder / CONFIG, {**read_json(folder / CONFIG), **changes})


def copy_companions(source: Path, target: Path) -> None:
    """Copy tokenizer files and settings, including those of sentence-transformers, but no code and no weights."""
    files = [file for file in source.iterdir() if file.name not in _NOT_COPIED]
    for file in sorted([*files, *source.glob("[0-9]_*/*.json")]):
        if file.is_file() and file.suffix in _COPIED:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, copy)


def read_texts(data: Path | str | None, subset: str, folder: Path, head: str = "") -> list[str]:
    """Return the non-empty lines of ``data/subset.txt``, or of ``data/subset.tsv`` for heads in :data:`TABLES`.

    Args:
        folder: model folder, for messages.

    Raises:
        DataError: ``data`` is None, there are fewer than two lines, or a line of a ``.tsv`` file has not one tab.
    """
    kind, content = (".tsv", TABLES[head]) if head in TABLES else (".txt", "one text")
    if data is None:
        raise DataError(
            f"{folder} does not name a data folder for its evaluation; give a folder with {subset}{kind} as --data"
        )
    path = Path(data) / f"{subset}{kind}"
    if not path.is_file():
        raise DataError(
            f"{path} does not exist; give a folder with train{kind} and valid{kind}, {content} per line, as --data"
        )
    with os_errors("read", path):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    texts = [line.strip() for line in lines if line.strip()]
    if bad := [text for text in texts if head in TABLES and text.count("\t") != 1]:
        raise DataError(
            f"{path} has {len(bad)} lines without exactly one tab, such as {bad[0][:60]!r}; expected {content} in"
            " each line"
        )
    if len(texts) < 2:
        raise DataError(f"{path} contains {len(texts)} texts; expected two or more, one per line")
    return texts
