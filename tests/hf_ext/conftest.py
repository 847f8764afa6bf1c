"""Small encoders of transformers with random weights, and texts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

WORDS = [f"word{index}" for index in range(30)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.hf)
            if not (find_spec("transformers") and find_spec("accelerate")):
                item.add_marker(pytest.mark.skip(reason="needs transformers and accelerate, nas-ext[hf]"))


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 48 texts to train on and 12 to validate on, also with classes."""
    folder = tmp_path_factory.mktemp("texts")
    lines = [
        " ".join(WORDS[(7 * line + 3 * place * place) % 30] for place in range(3 + line % 6)) for line in range(60)
    ]
    classes = [f"{line}\tLABEL_{index % 2}" for index, line in enumerate(lines)]
    for split, part in (("train", slice(48)), ("valid", slice(48, None))):
        (folder / f"{split}.txt").write_text("\n".join(lines[part]))
        (folder / f"{split}.tsv").write_text("\n".join(classes[part]))
    return folder


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.hf_ext.tiny import save

    return save("BertModel", tmp_path_factory.mktemp("bert") / "trained")


@pytest.fixture(scope="session")
def decoder(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A supernet of a Llama with two groups of two heads."""
    from nas_core.supernet.elastic.conversion import convert
    from nas_core.supernet.host import open_trained
    from tests.hf_ext.tiny import save

    folder = tmp_path_factory.mktemp("decoder")
    trained = open_trained(save("LlamaForCausalLM", folder / "trained", num_key_value_heads=2), data=str(texts))
    convert(trained, folder / "family", importance_by="activation", calibration_batches=1)
    return folder / "family"


@pytest.fixture(scope="session")
def family(bert: Path, texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A supernet with sorted channels and an order of layers."""
    from nas_core.supernet.elastic.conversion import convert
    from nas_core.supernet.host import open_trained

    folder = tmp_path_factory.mktemp("family") / "family"
    convert(
        open_trained(bert, data=str(texts), calibration_batches=1),
        folder,
        importance_by="activation",
        calibration_batches=1,
    )
    return folder
