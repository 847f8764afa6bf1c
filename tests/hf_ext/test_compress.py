"""``nas-ext compress`` of folders of transformers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers

from hf_ext.texts import agreement
from nas_core.cli import main
from nas_core.compression.candidates import PROFILES, pruned
from nas_core.compression.repair import Repair, record, refit, sublayers_of
from nas_core.compression.training import LastLinear, evaluate
from nas_core.supernet.host import open_trained
from tests.hf_ext.tiny import save

SETTINGS = [
    "--batch-size",
    "8",
    "--calibration-batches",
    "2",
    "--valid-samples",
    "12",
    "--updates",
    "60",
]
MODELS = {
    "BertModel": "AutoModel",
    "BertForMaskedLM": "AutoModelForMaskedLM",
    "RobertaForSequenceClassification": "AutoModelForSequenceClassification",
    "BertForTokenClassification": "AutoModelForTokenClassification",
    "LlamaForCausalLM": "AutoModelForCausalLM",
    "MarianMTModel": "AutoModelForSeq2SeqLM",
}
"""Class of a trained model -> class that loads the result."""


@pytest.fixture(scope="module")
def data(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The texts, and as translations of themselves."""
    folder = tmp_path_factory.mktemp("data")
    for split in ("train", "valid"):
        lines = (texts / f"{split}.txt").read_text().splitlines()
        (folder / f"{split}.txt").write_text("\n".join(lines))
        (folder / f"{split}.tsv").write_text("\n".join(f"{line}\t{line}" for line in lines))
    return folder


@pytest.fixture
def data_of(data: Path, texts: Path) -> Callable[[str], Path]:
    """Data of a model: texts with classes for a classifier."""
    return lambda name: texts if name.endswith("ForSequenceClassification") else data


def compress(checkpoint: Path, data: Path, out: Path, *more: str) -> int:
    command = ["compress", "--checkpoint", str(checkpoint), "--data", str(data), "--out", str(out)]
    return main([*command, "--limit", "latency_ms=60%", *SETTINGS, *more])


@pytest.mark.parametrize("name", [name for name in MODELS if name != "MarianMTModel"])
def test_a_folder_becomes_smaller(
    name: str, data_of: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained, out = save(name, tmp_path / "trained"), tmp_path / "small"
    assert compress(trained, data_of(name), out) == 0
    printed = capsys.readouterr().out
    assert re.search(r"trained network +\S+ +1\.00", printed), printed
    kind = getattr(transformers, MODELS[name])
    models = [kind.from_pretrained(folder) for folder in (trained, out)]
    whole, small = [sum(p.numel() for p in model.parameters()) for model in models]
    assert small < whole and models[1].config.hidden_size == models[0].config.hidden_size
    assert {file.name for file in trained.glob("*token*")} <= {file.name for file in out.iterdir()}


@pytest.mark.parametrize("name", MODELS)
def test_repair_reduces_the_error_of_the_residual_stream(
    name: str, data_of: Callable[[str], Path], tmp_path: Path
) -> None:
    trained = open_trained(save(name, tmp_path / "trained"), data=str(data_of(name)))
    batches, largest = trained.calibration(2), trained.space.largest()
    teacher = trained.static(largest).eval()
    kept = {side: tuple(range(count)) for side, count in trained.form.sides(trained.net).items()}
    model = trained.static(pruned(trained.space, kept, share=0.5, multiples=trained.multiples)).eval()

    def distance() -> float:
        last = [[*sublayers_of(network.net, [*kept])][-1:] for network in (teacher, model)]
        streams = [
            record(trained, network, end, batches)[0] for network, end in zip((teacher, model), last, strict=True)
        ]
        return sum(float((a.stream - b.stream).square().mean()) for a, b in zip(*streams, strict=True))

    before = distance()
    Repair(trained, teacher, batches)(model, kept)
    assert distance() < 0.9 * before


@pytest.mark.parametrize("name", MODELS)
def test_repair_in_one_pass_equals_a_pass_per_sublayer(
    name: str, data_of: Callable[[str], Path], tmp_path: Path
) -> None:
    trained = open_trained(save(name, tmp_path / "trained"), data=str(data_of(name)))
    batches, teacher = trained.calibration(2), trained.static(trained.space.largest()).eval()
    counts = trained.form.sides(trained.net)
    kept = {side: (0, count - 1) for side, count in counts.items()}
    trained.form.set_order(trained.net, {side: (*kept[side], *range(1, count - 1)) for side, count in counts.items()})
    repair = Repair(trained, teacher, batches)
    model, reference = (trained.static(pruned(trained.space, kept, share=0.5)).eval() for _ in range(2))
    repair(model, kept)
    with torch.no_grad():
        for sublayer in sublayers_of(reference.net, [*kept]):
            source = repair._source(sublayer, kept)
            if sublayer.name == "ffn" and not trained.net.family.norm_first:
                sublayer.norm.load_state_dict(repair._sublayers[source].norm.state_dict())
            (recorded,) = record(trained, reference, [sublayer], batches)
            refit(sublayer.linear, recorded, repair._targets[source], repair._ridges)
    for (key, one), other in zip(model.state_dict().items(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4, msg=lambda text, key=key: f"{key}: {text}")


def test_an_error_in_the_pass_of_a_batch_ends_the_repair(data: Path, tmp_path: Path) -> None:
    trained = open_trained(save("BertModel", tmp_path / "trained"), data=str(data))
    batches, model = trained.calibration(2), trained.static(trained.space.largest()).eval()
    repair = Repair(trained, model, batches)
    batches[0]["input_ids"] += 1000
    with pytest.raises(IndexError, match="out of range"):
        repair(model, {"": (0, 1, 2)})


def test_a_translation_network_of_some_layers_is_saved(data: Path, tmp_path: Path) -> None:
    trained = open_trained(save("MarianMTModel", tmp_path / "trained"), data=str(data))
    kept = {"encoder": (0, 2), "decoder": (1,)}
    trained.form.set_order(trained.net, {"encoder": (0, 2, 1), "decoder": (1, 0)})
    model = trained.static(pruned(trained.space, kept, share=0.5, multiples=trained.multiples)).eval()
    trained.save_static(tmp_path / "small", model, kept)
    saved = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "small")
    batch = trained.held_out(12)[0]
    with torch.no_grad():
        torch.testing.assert_close(saved(**batch).logits, model(**batch).logits)
    assert (saved.config.encoder_layers, saved.config.decoder_layers) == (2, 1)
    parts = trained.workload(model, 2).components
    parts["encoder"]()
    assert parts["decoder"]().shape == (2, 1, 40), "two sentences, one token, the vocabulary"  # type: ignore[attr-defined]


def test_metrics_of_the_trained_model(data: Path, tmp_path: Path) -> None:
    sentences = open_trained(save("BertModel", tmp_path / "bert"), data=str(data))
    held_out = sentences.held_out(12)
    metrics = evaluate(sentences, sentences.original, held_out)
    assert len(held_out) == 2
    assert metrics == {"loss": pytest.approx(0, abs=1e-5), "agreement": pytest.approx(100), "retrieval": 100}
    half = sentences.static(pruned(sentences.space, {"": (0, 1)}, share=0.5, multiples=sentences.multiples))
    metrics = evaluate(sentences, half, held_out)
    assert metrics["loss"] > 0.01 and metrics["agreement"] < 99
    decoder = open_trained(save("LlamaForCausalLM", tmp_path / "llama"), data=str(data))
    batch = decoder.held_out(12)[0]
    logits, targets = decoder.logits(decoder.original, batch)
    expected = decoder.original(**batch).loss
    assert torch.allclose(torch.nn.functional.cross_entropy(logits, targets), expected, atol=1e-5)


def test_a_llamas_heads_divide_its_width(tmp_path: Path, data: Path) -> None:
    sizes = {"hidden_size": 32, "num_attention_heads": 8, "num_key_value_heads": 4}
    trained = open_trained(save("LlamaForCausalLM", tmp_path / "llama", **sizes), data=str(data))
    assert trained.multiples["kv_heads"] == 2  # 3 groups of 2 heads would not divide 32
    architecture = pruned(trained.space, {"": (0, 1)}, PROFILES[-1], 0.6, trained.multiples)
    assert architecture.number("kv_heads") == 2 and architecture.number("embed_dim") == 32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--batch-size", "100"], "--batch-size"),
        (["--data", "nowhere"], "nowhere"),
        (["--limit", "latency_ms=1%"], "1%"),
    ],
)
def test_wrong_input(
    bert: Path, data: Path, tmp_path: Path, change: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compress(bert, data, tmp_path / "small", *change) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "small").exists()


def test_agreement_of_sentence_embeddings() -> None:
    trained = torch.tensor([[1, 0], [1, 0.1], [0, 1], [0.2, 1]])
    one_moved = torch.tensor([[1, 0], [1, 0.1], [0, 1], [1, 0.2]])  # the last is now similar to the first two
    assert agreement(3 * trained, trained) == {"spearman": pytest.approx(1), "retrieval": 1}
    metrics = agreement(one_moved, trained)
    assert metrics == {"spearman": pytest.approx(5 / 7), "retrieval": 0.5}


@pytest.mark.parametrize(
    ("name", "output_layer"),
    [
        ("BertForMaskedLM", "cls.predictions.decoder"),
        ("LlamaForCausalLM", "lm_head"),
        ("MarianMTModel", "lm_head"),
    ],
)
def test_features_are_the_inputs_of_the_output_layer(name: str, output_layer: str, data: Path, tmp_path: Path) -> None:
    trained = open_trained(save(name, tmp_path / "trained"), data=str(data))
    model, batch = trained.static(trained.space.largest()), trained.held_out(12)[0]
    with torch.no_grad(), LastLinear() as last:
        logits = model(**batch).logits
    with torch.no_grad():
        torch.testing.assert_close(model.model.get_submodule(output_layer)(last.features), logits)
