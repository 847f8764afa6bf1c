"""Wrong input: an error of one line, nothing written, and no code of a folder executed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import CheckpointError, ConfigError, DataError, NasExtError, SpaceError, UnknownChoiceError
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import convert
from nas_core.supernet.host import open_trained

Change = Callable[[Path], Any]


def config(**changes: Any) -> Change:
    def change(folder: Path) -> None:
        content = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**content, **changes}))

    return change


def settings(**changes: Any) -> Change:
    def change(folder: Path) -> None:
        content = json.loads((folder / "nas_ext.json").read_text())
        (folder / "nas_ext.json").write_text(json.dumps({**content, **changes}))

    return change


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")


def sharded(change: Callable[[Any], Any]) -> Change:
    """Split the weights into shards, and change the entries of their index."""

    def split(folder: Path) -> None:
        import torch
        from transformers import AutoModel

        model = AutoModel.from_pretrained(folder)
        (folder / "model.safetensors").unlink()
        model.save_pretrained(folder, max_shard_size="20KB")
        file = folder / "model.safetensors.index.json"
        index = json.loads(file.read_text())
        names = {tensor: change(name) for tensor, name in index["weight_map"].items()}
        file.write_text(json.dumps({**index, "weight_map": names}))
        torch.save({}, folder / "shard.bin")

    return split


def remote(folder: Path) -> None:
    (folder / "code.py").write_text("open('ran', 'w')")
    config(auto_map={"AutoModel": "code.Model"})(folder)


def tokenizer_code(folder: Path) -> None:
    (folder / "code.py").write_text("open('ran', 'w')\nclass Own: pass")
    file = folder / "tokenizer_config.json"
    names = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["code.Own", None]}}
    file.write_text(json.dumps({**json.loads(file.read_text()), **names}))


FOLDERS: dict[str, tuple[Change, dict[str, Any], type[NasExtError]]] = {
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), {}, CheckpointError),
    "a pickle": (pickled, {}, CheckpointError),
    "pickled shards": (
        lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model-00001-of-00001.bin"),
        {},
        CheckpointError,
    ),
    "an index of pickles": (sharded(lambda name: "shard.bin"), {}, CheckpointError),
    "an index of numbers": (sharded(lambda name: 3), {}, CheckpointError),
    "a missing shard": (sharded(lambda name: name.replace("00001", "00009")), {}, CheckpointError),
    "an index of no kind": (
        lambda folder: (folder / "model.safetensors").rename(folder / "model.safetensors.index.json").write_text("[]"),
        {},
        CheckpointError,
    ),
    "quantized weights": (config(quantization_config={"quant_method": "gptq", "bits": 4}), {}, CheckpointError),
    "a type of no kind": (config(model_type=["bert"]), {}, CheckpointError),
    "remote code": (remote, {}, CheckpointError),
    "a tokenizer of remote code": (tokenizer_code, {}, CheckpointError),
    "multiple choice": (config(architectures=["BertForMultipleChoice"]), {}, CheckpointError),
    "a tokenizer of other words": (
        lambda folder: (folder / "vocab.txt").write_text(
            "\n".join(["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(30))])
        ),
        {"calibration_batches": 1},
        CheckpointError,
    ),
    "an empty vocabulary": (
        lambda folder: (folder / "vocab.txt").write_text(""),
        {"calibration_batches": 1},
        CheckpointError,
    ),
    "a damaged tokenizer": (
        lambda folder: (folder / "tokenizer.json").write_text("{"),
        {"calibration_batches": 1},
        CheckpointError,
    ),
    "another type": (config(model_type="t5"), {}, CheckpointError),
    "a decoder": (config(is_decoder=True), {}, CheckpointError),
    "relative positions": (config(position_embedding_type="relative_key"), {}, CheckpointError),
    "damaged weights": (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), {}, CheckpointError),
    "other sizes": (config(hidden_size=64), {}, CheckpointError),
    "more layers": (config(num_hidden_layers=5), {}, CheckpointError),
    "sizes of no kind": (config(hidden_size="wide"), {}, CheckpointError),
    "a list as settings": (lambda folder: (folder / "config.json").write_text("[]"), {}, CheckpointError),
    "no tokenizer": (lambda folder: (folder / "vocab.txt").unlink(), {"calibration_batches": 1}, CheckpointError),
    "tokens outside the model": (
        lambda folder: (folder / "vocab.txt").write_text(
            "\n".join(["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(90)), "word1"])
        ),
        {"calibration_batches": 1},
        CheckpointError,
    ),
    "no data": (lambda folder: None, {"calibration_batches": 1, "data": None}, DataError),
    "linear attention": (lambda folder: None, {"attention": ("softmax", "linear")}, ConfigError),
    "a space of another network": (lambda folder: None, {"space": "roberta_small"}, SpaceError),
    "an unknown gene": (lambda folder: None, {"space": "auto:depth"}, UnknownChoiceError),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_trained_folders(case: str, bert: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change, options, error = FOLDERS[case]
    monkeypatch.chdir(tmp_path)
    change(Path(shutil.copytree(bert, tmp_path / "trained")))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(error) as raised:
        open_trained(tmp_path / "trained", **{"data": str(texts), **options})
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400
    assert sorted(tmp_path.rglob("*")) == before


def test_shards_are_read(bert: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    folder = Path(shutil.copytree(bert, tmp_path / "trained"))
    sharded(lambda name: name)(folder)
    convert(open_trained(folder), tmp_path / "family")
    converted, expected = (load_file(place / "model.safetensors") for place in (tmp_path / "family", bert))
    assert {name: tensor.sum().item() for name, tensor in converted.items()} == pytest.approx(
        {name: tensor.sum().item() for name, tensor in expected.items()}, abs=1e-4
    )


def test_attention_from_the_hub_is_not_loaded(bert: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "trained"))
    config(_attn_implementation="owner/kernel")(folder)
    assert open_trained(folder).net.model.config._attn_implementation == "sdpa"


SUPERNETS: dict[str, tuple[Change, type[NasExtError]]] = {
    "a trained model": (lambda folder: (folder / "nas_ext.json").unlink(), CheckpointError),
    "another version": (settings(version=2), CheckpointError),
    "an order of no kind": (settings(layer_order=[0, 1, 2]), CheckpointError),
    "no order": (settings(layer_order={"": [0, 0, 1]}), CheckpointError),
    "no channels": (settings(channels=[1, 2]), CheckpointError),
    "channels of no kind": (settings(channels=None), CheckpointError),
    "no space": (settings(space=[]), SpaceError),
    "no teacher": (settings(teacher="/nowhere"), DataError),
    "no texts": (settings(data="/nowhere"), DataError),
}


@pytest.mark.parametrize("case", SUPERNETS)
def test_supernets(case: str, family: Path, tmp_path: Path) -> None:
    change, error = SUPERNETS[case]
    change(Path(shutil.copytree(family, tmp_path / "family")))
    with pytest.raises(error) as raised:
        supernet = open_supernet(tmp_path / "family")
        supernet.evaluate(supernet.space.smallest())
    assert "\n" not in str(raised.value)


def test_outputs_that_exist(family: Path, tmp_path: Path) -> None:
    supernet = open_supernet(family)
    (tmp_path / "there").mkdir()
    with pytest.raises(NasExtError):
        supernet.extract(supernet.space.smallest(), tmp_path / "there")
    assert not list((tmp_path / "there").iterdir())


def test_a_supernet_is_not_converted_again(family: Path) -> None:
    with pytest.raises(CheckpointError):
        open_trained(family)


def test_a_narrower_network_with_a_dense_module_is_rejected(family: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(family, tmp_path / "family"))
    modules = [{"path": "", "type": "st.Transformer"}, {"path": "2_Dense", "type": "st.Dense"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    supernet = open_supernet(folder)
    with pytest.raises(ConfigError):
        supernet.extract(supernet.space.smallest(), tmp_path / "subnet")
    assert not (tmp_path / "subnet").exists()
