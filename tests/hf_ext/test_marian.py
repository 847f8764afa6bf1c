"""Translation models of Marian: subnets as plain folders, loss and BLEU, training, and the kind of network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nas_core.errors import CheckpointError, ConfigError, DataError
from nas_core.models.kind import kind_of
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import TOLERANCE, convert
from nas_core.supernet.host import open_trained
from tests.hf_ext.conftest import WORDS
from tests.hf_ext.test_conversion import batch, genes
from tests.hf_ext.tiny import model, save

SMALL = {"encoder.layers": 2, "decoder.layers": 1, "embed_dim": 24, "encoder.ffn_dim": 12, "decoder.ffn_dim": 20}
FORMS: dict[str, dict[str, Any]] = {
    "shared": {"max_length": 12, "num_beams": 2},
    "two vocabularies": {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 36},
    "an own output": {"tie_word_embeddings": False, "activation_function": "swish", "scale_embedding": False},
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 48 pairs of sentences to train on and 12 to validate on. The target is the source in reverse."""
    folder = tmp_path_factory.mktemp("pairs")
    for split, rows in (("train", range(48)), ("valid", range(48, 60))):
        sources = [[WORDS[(7 * row + 3 * place * place) % 30] for place in range(3 + row % 5)] for row in rows]
        lines = [f"{' '.join(source)}\t{' '.join(source[::-1])}" for source in sources]
        (folder / f"{split}.tsv").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose bias of the logits is random too."""
    folder = save("MarianMTModel", tmp_path_factory.mktemp("marian") / "trained", **FORMS["shared"])
    return biased(folder)


@pytest.fixture(scope="module")
def marian(trained: Path, pairs: Path) -> Path:
    """A supernet with sorted channels and an order of layers."""
    opened = open_trained(trained, data=str(pairs), calibration_batches=1)
    convert(opened, trained.parent / "family", importance_by="activation", calibration_batches=1)
    return trained.parent / "family"


def biased(folder: Path) -> Path:
    network = loaded(folder)
    network.final_logits_bias.copy_(torch.randn(network.final_logits_bias.shape))
    network.save_pretrained(folder)
    return folder


def loaded(folder: Path) -> Any:
    from transformers import AutoModelForSeq2SeqLM

    return AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


def labelled(inputs: dict[str, torch.Tensor], most: int = 36) -> dict[str, torch.Tensor]:
    """Add labels with padding where the sources have none."""
    tokens = inputs["input_ids"].clamp(max=most - 1)
    return {**inputs, "labels": tokens.where(inputs["attention_mask"].flip(0).bool(), -100)}


def assert_equal_logits(before: Any, after: Any) -> None:
    for inputs in (labelled(batch()), labelled(batch(left=True))):
        with torch.no_grad():
            expected, output = before(**inputs), after(**inputs)
        limit = 1e-5 * float(expected.logits.abs().max())
        torch.testing.assert_close(output.logits, expected.logits, rtol=0, atol=limit)


@pytest.mark.parametrize("form", FORMS)
def test_the_largest_subnet_is_the_trained_model(form: str, pairs: Path, tmp_path: Path) -> None:
    trained = biased(save("MarianMTModel", tmp_path / "trained", **FORMS[form]))
    opened = open_trained(trained, data=str(pairs), calibration_batches=1)
    assert (
        convert(opened, tmp_path / "family", importance_by="activation", calibration_batches=1).difference <= TOLERANCE
    )
    supernet = open_supernet(tmp_path / "family")
    supernet.extract(supernet.space.largest(), tmp_path / "largest")
    before, after = loaded(trained), loaded(tmp_path / "largest")
    assert_equal_logits(before, after)
    inputs = batch()
    assert before.generate(**inputs).equal(after.generate(**inputs))


@pytest.mark.parametrize("changes", [{"decoder.layers": 1}, {"encoder.layers": 2, "decoder.ffn_dim": 20}, SMALL])
def test_a_subnet_is_a_plain_folder_of_equal_output(marian: Path, tmp_path: Path, changes: dict[str, int]) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    supernet: Any = open_supernet(marian)
    architecture = genes(supernet, **changes)
    parameters = supernet.extract(architecture, tmp_path / "subnet")
    network, info = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "subnet", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert parameters == sum(tensor.numel() for tensor in network.parameters())
    config = network.config
    assert (config.encoder_layers, config.decoder_layers) == (
        architecture["encoder.layers"],
        architecture["decoder.layers"],
    )
    assert config.d_model == 8 * config.encoder_attention_heads == 8 * config.decoder_attention_heads
    subnet = supernet.elastic.select(architecture)
    assert_equal_logits(lambda **inputs: supernet.elastic(subnet, inputs), network.eval())
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "subnet")
    assert tokenizer.batch_decode(tokenizer([WORDS[3]])["input_ids"], skip_special_tokens=True) == [WORDS[3]]


def test_units_without_effect_leave_first_on_both_sides(pairs: Path, tmp_path: Path) -> None:
    trained = save("MarianMTModel", tmp_path / "trained")
    network = loaded(trained)
    with torch.no_grad():
        for layer in (*network.model.encoder.layers, *network.model.decoder.layers):
            layer.fc2.weight[:, ::2] = 0
    network.save_pretrained(trained)
    opened = open_trained(trained, data=str(pairs), space="auto:ffn_dim", calibration_batches=1)
    convert(opened, tmp_path / "family", importance_by="activation", calibration_batches=1)
    supernet = open_supernet(tmp_path / "family")
    sizes = ({}, {"encoder.ffn_dim": 24, "decoder.ffn_dim": 20}, {"encoder.ffn_dim": 12, "decoder.ffn_dim": 8})
    losses = [supernet.evaluate(genes(supernet, **changes))["loss"] for changes in sizes]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5) and losses[2] != pytest.approx(losses[0], rel=1e-5)


def test_loss_and_bleu_are_transformers_and_sacrebleu(marian: Path, pairs: Path, tmp_path: Path) -> None:
    import sacrebleu
    from transformers import AutoTokenizer

    supernet: Any = open_supernet(marian)
    architecture = genes(supernet, **SMALL)
    supernet.extract(architecture, tmp_path / "subnet")
    network, tokenizer = loaded(tmp_path / "subnet"), AutoTokenizer.from_pretrained(marian)
    rows = [line.split("\t") for line in (pairs / "valid.tsv").read_text().splitlines()]
    sources, targets = [source for source, _ in rows], [target for _, target in rows]
    inputs = tokenizer(sources, text_target=targets, padding=True, return_tensors="pt")
    inputs["labels"][inputs["labels"] == tokenizer.pad_token_id] = -100
    with torch.no_grad():
        expected = float(network(**inputs).loss)
    assert supernet.evaluate(architecture) == {"loss": pytest.approx(expected, rel=1e-5)}
    tokens = network.generate(inputs["input_ids"], attention_mask=inputs["attention_mask"])
    translations = tokenizer.batch_decode(tokens, skip_special_tokens=True)
    supernet.add_metric("bleu")
    bleu = sacrebleu.corpus_bleu(translations, [targets]).score
    assert supernet.evaluate(architecture)["bleu"] == pytest.approx(bleu) and bleu > 0


@pytest.mark.parametrize("distill", ["labels", "logits", "features"])
def test_training_lowers_the_loss_of_the_smallest_network(
    distill: str, marian: Path, pairs: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer, DataCollatorForSeq2Seq, TrainingArguments

    from hf_ext import SupernetTrainer

    tokenizer = AutoTokenizer.from_pretrained(marian)
    rows = [line.split("\t") for line in (pairs / "train.tsv").read_text().splitlines()]
    samples = [dict(tokenizer(source, text_target=target)) for source, target in rows]
    arguments = TrainingArguments(
        str(tmp_path / "run"), max_steps=20, per_device_train_batch_size=8, learning_rate=3e-3, report_to=[],
        use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False, save_steps=20,
    )  # fmt: skip
    collator = DataCollatorForSeq2Seq(tokenizer)
    training = SupernetTrainer(marian, args=arguments, train_dataset=samples, data_collator=collator, distill=distill)
    inputs, smallest = labelled(batch()), training.supernet.space.smallest()
    with torch.no_grad():
        teacher = training.supernet(training.supernet.select(training.supernet.space.largest()), inputs)

    def distance(folder: Path) -> float:
        supernet = open_supernet(folder)
        if distill == "labels":
            return supernet.evaluate(smallest)["loss"]
        network = supernet.network
        with torch.no_grad():
            output = network(network.select(smallest), inputs)
        counted = inputs["labels"].ne(-100)
        if distill == "logits":
            return float(torch.nn.functional.cross_entropy(output.logits[counted], teacher.logits[counted].softmax(-1)))
        features = output.decoder_hidden_states[-1][counted]
        same = teacher.decoder_hidden_states[-1][counted][:, : features.shape[1]]
        return -float(torch.cosine_similarity(features, same, dim=-1).mean())

    training.train()
    assert distance(tmp_path / "run" / "checkpoint-20") < distance(marian)
    with pytest.raises(ConfigError):
        training.training_step(training.model, {name: x for name, x in inputs.items() if name != "labels"})


def test_the_kind_counts_and_times_what_is_extracted(marian: Path) -> None:
    supernet: Any = open_supernet(marian)
    space = supernet.space
    kind = kind_of(space)
    task = kind.task_settings(supernet.task)
    assert kind.name == "marian" and task == {"source_vocab": 40, "target_vocab": 40}
    for architecture in (space.smallest(), space.largest(), genes(supernet, **{"decoder.layers": 1})):
        static = supernet.elastic.static_model(supernet.elastic.select(architecture)).model
        layers = [*static.encoder.layers.parameters(), *static.decoder.layers.parameters()]
        assert round(1e6 * kind.params_m(architecture)) == sum(tensor.numel() for tensor in layers)
        config = kind.config({**task, "source_length": 5, "target_length": 4, "beam": 1})
        workload: Any = kind.workload(space, architecture, config)
        (built,) = workload.modules
        assert sum(tensor.numel() for tensor in built.parameters()) == kind.weights(architecture, config)
        if architecture == space.smallest():
            workload.convert(torch.float32)
        with torch.inference_mode():
            source, targets = workload._source, workload._targets[:, :, 0].T  # private: inputs
            expected = built(source, decoder_input_ids=targets).logits[:, -1:]
            workload.components["encoder"]()
            torch.testing.assert_close(workload.components["decoder"](), expected, rtol=0, atol=1e-5)
        wide = kind.config({**task, "source_length": 5, "target_length": 4, "beam": 2})
        workload = kind.workload(space, architecture, wide)
        with torch.inference_mode():
            workload.encode()
            cache = workload.decode_all()[1]
        both = (*cache.self_attention_cache.layers, *cache.cross_attention_cache.layers)
        assert sum(layer.keys.numel() + layer.values.numel() for layer in both) == kind.cache(architecture, wide)
        depths = architecture.number("encoder.layers"), architecture.number("decoder.layers")
        assert len(kind.graph(architecture).ops) == 3 + 2 * depths[0] + 3 * depths[1]
        assert max(kind.graph(architecture).ops) < len(kind.operations)
        assert tuple(len(genes["ffn_dim"]) for genes in kind.layers(architecture).values()) == depths
        assert kind.flops_g(architecture) > 0 and kind.memory_mb(architecture, wide) > 0
        with pytest.raises(ConfigError):
            kind.exports(space, architecture, config)
    two = kind.config({"source_vocab": 40, "target_vocab": 30})
    built = kind.build(space, space.largest(), two)
    assert sum(tensor.numel() for tensor in built.parameters()) == kind.weights(space.largest(), two)


def test_latency_search_and_extraction_by_the_commands(marian: Path, tmp_path: Path) -> None:
    from nas_core.cli import main
    from nas_core.space import save_space

    space, run, times = tmp_path / "space.yml", tmp_path / "run", tmp_path / "times.jsonl"
    save_space(open_supernet(marian).space, space)
    workload = ["source_vocab=40", "target_vocab=40", "source_length=6", "target_length=4", "beam=2"]
    timing = [part for setting in workload for part in ("--workload", setting)]
    timing += ["--samples", "14", "--warmup", "0", "--repeats", "1"]
    assert main(["latency", "collect", "--space", str(space), *timing, "--out", str(times)]) == 0
    assert main(["latency", "fit", "--data", str(times), "--out", str(tmp_path / "fit.json")]) == 0
    settings = ["--latency-model", str(tmp_path / "fit.json"), "--limit", "latency_ms=1e6", "--strategy", "random"]
    settings += ["--set", "evaluations=4", "--finalists", "1", "--no-measure", "--out", str(run)]
    assert main(["search", "--checkpoint", str(marian), *settings]) == 0
    (finalist,) = (run / "finalists").glob("*.json")
    assert main(["extract", "--checkpoint", str(marian), "--arch", str(finalist), "--out", str(tmp_path / "x")]) == 0
    assert main(["report", str(run)]) == 0
    assert loaded(tmp_path / "x").config.model_type == "marian"


def _source_only(folder: Path, pairs: Path) -> None:
    (pairs / "train.tsv").write_text("word1\tword2\nword3 without a target\n")


def _no_pieces(folder: Path, pairs: Path) -> None:
    (folder / "source.spm").unlink()


def _unknown_tokens(folder: Path, pairs: Path) -> None:
    content = json.loads((folder / "vocab.json").read_text())
    (folder / "vocab.json").write_text(json.dumps({**content, "\u2581word7": 99}))


def _other_heads(folder: Path, pairs: Path) -> None:
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**content, "decoder_attention_heads": 2}))


def _no_output(folder: Path, pairs: Path) -> None:
    model("MarianModel").save_pretrained(folder)


WRONG: dict[str, tuple[Callable[[Path, Path], None], type[Exception]]] = {
    "no target": (_source_only, DataError),
    "no pairs": (lambda folder, pairs: (pairs / "train.tsv").unlink(), DataError),
    "no pieces": (_no_pieces, CheckpointError),
    "tokens outside the model": (_unknown_tokens, CheckpointError),
    "other heads in the decoder": (_other_heads, CheckpointError),
    "no output": (_no_output, CheckpointError),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_folders(case: str, trained: Path, pairs: Path, tmp_path: Path) -> None:
    import shutil

    change, error = WRONG[case]
    folder, data = (Path(shutil.copytree(place, tmp_path / place.name)) for place in (trained, pairs))
    change(folder, data)
    with pytest.raises(error) as raised:
        open_trained(folder, data=str(data), calibration_batches=1)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400
