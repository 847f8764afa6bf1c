"""``nas-ext export`` on fairseq checkpoints: supernets and extracted subnets."""

import argparse

import pytest
import torch

from examples.export.greedy_onnx import Translator
from nas_core.cli import main
from nas_core.files.reading import read_json
from nas_core.supernet import open_supernet
from tests.fairseq_ext.running import subnet

for name in ("onnx", "onnxruntime", "onnxscript"):
    pytest.importorskip(name, reason=f"{name} is not installed")

pytestmark = pytest.mark.onnx
LONGEST = 12


@pytest.fixture(scope="module")
def extracted(trained, architecture_file, tmp_path_factory):
    path = tmp_path_factory.mktemp("extracted") / "subnet.pt"
    arguments = ["--checkpoint", str(trained("neuron")), "--arch", str(architecture_file), "--out", str(path)]
    assert main(["extract", *arguments]) == 0
    return path


@pytest.fixture(scope="module")
def folder(extracted, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported") / "out"
    assert main(["export", "--checkpoint", str(extracted), "--out", str(out)]) == 0
    return out


def test_greedy_translations_of_the_test_set_are_fairseqs(extracted, folder, pair):
    info = read_json(folder / "model.json")
    assert info["kind"] == "translation" and info["architecture"] == subnet().to_dict()
    assert info["tokens"] == {"bos": 0, "pad": 1, "eos": 2, "unk": 3}
    assert info["languages"] == {"source": "src", "target": "tgt"}
    assert info["vocabulary"] == {"source": len(pair.source_dictionary), "target": len(pair.target_dictionary)}
    model = open_supernet(extracted).model
    options = argparse.Namespace(beam=1, max_len_a=0, max_len_b=LONGEST)
    generator, dataset = pair.build_generator([model], options), pair.dataset("test")
    sample = dataset.collater([dataset[row] for row in range(len(dataset))])
    with torch.no_grad():
        result = generator.generate([model], sample)
    expected = {int(row): best[0]["tokens"].tolist()[:-1] for row, best in zip(sample["id"], result, strict=True)}
    translator = Translator(folder)
    sentences = [dataset.src[row].tolist() for row in range(len(dataset))]
    assert translator.greedy(sentences, LONGEST) == [expected[row] for row in range(len(dataset))]
    assert len(set(map(tuple, expected.values()))) > 3
    assert translator.text_of(expected[0]) == pair.target_dictionary.string(expected[0])
    assert translator.indices_of(pair.source_dictionary.string(sentences[0][:-1])) == sentences[0]
