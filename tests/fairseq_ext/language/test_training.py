"""Language models through fairseq's commands: training, resuming, validation, scoring and generation."""

from __future__ import annotations

import argparse
import math

import pytest
import torch
from fairseq import checkpoint_utils

from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from tests.fairseq_ext.running import LANGUAGE_SPACE, USER_DIR, assert_one_line, passed, run

GENERATING = ["--user-dir", USER_DIR, "--task", "language_modeling", "--beam", 3, "--num-workers", 0, "--cpu",
              "--max-len-b", 14, "--max-len-a", 0, "--sample-break-mode", "eos"]  # fmt: skip


SUBNET = LANGUAGE_SPACE.validate(
    Architecture({
        **LANGUAGE_SPACE.fixed, "layers": 3, "embed_dim": 12, "ffn_dim": [16, 32, 24], "heads": [2, 4, 2],
        "attention": ["linear", "softmax", "linear"],
    })
)  # fmt: skip
"""Unlike the smallest and the largest: narrow, with a layer of each kind of attention."""


def test_resumed_training_is_the_uninterrupted_one_and_validates_fixed_subnets(command, tmp_path):
    options = [*command, "--arch", "mos_mformer_language_small", "--sampling", "sandwich", "--seed", 3]
    states = []
    for folder, updates in (("whole", (4,)), ("parts", (2, 4))):
        for update in updates:
            done = passed("train", *options, "--max-update", update, "--save-dir", tmp_path / folder)
        states.append(torch.load(tmp_path / folder / "checkpoint_last.pt", weights_only=True)["model"])
    torch.testing.assert_close(*map(dict, states), rtol=0, atol=0)
    valid = done.stats("valid")[-1]
    parts = [valid[f"valid_{name}_loss"] for name in ("smallest", "largest", "random1", "random2")]
    assert len(set(parts)) > 2 and valid["valid_loss"] == pytest.approx(sum(parts) / 4, abs=2e-3)


def test_positions_that_are_trained_and_a_longer_context(command, tmp_path):
    options = ["--arch", "mformer_language_small", "--positions", "learned", "--context-length", 40, "--max-update", 2]
    passed("train", *command, *options, "--tokens-per-sample", 40, "--save-dir", tmp_path)
    supernet = open_supernet(tmp_path / "checkpoint_last.pt")
    assert supernet.space.fixed["context_length"] == 40
    assert supernet.model.net.positions.table.shape == (40, 16)
    assert supernet.model.max_positions() == 40


@pytest.fixture(scope="module")
def extracted(supernet_of, tmp_path_factory):
    path = tmp_path_factory.mktemp("extracted") / "subnet.pt"
    open_supernet(supernet_of("mos_mformer_language_small")).extract(SUBNET, path)
    return path


def test_eval_lm_scores_what_the_host_evaluates(extracted, supernet_of, text):
    done = passed("eval_lm", text, "--user-dir", USER_DIR, "--cpu", "--gen-subset", "valid", "--tokens-per-sample", 24,
                  "--task", "language_modeling", "--path", extracted, "--batch-size", 4)  # fmt: skip
    (line,) = [line for line in done.out.splitlines() if "Loss (base 2)" in line]
    metrics = open_supernet(supernet_of("mos_mformer_language_small")).evaluate(SUBNET)
    assert float(line.split("Loss (base 2):")[1].split(",")[0]) == pytest.approx(metrics["nll_loss"], abs=2e-3)
    assert metrics["ppl"] == pytest.approx(2 ** metrics["nll_loss"]) and metrics["loss"] == metrics["nll_loss"]


def test_generated_text_is_the_likeliest_by_the_full_forward(extracted, text):
    """Beam search step by step scores as all positions at once do."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(extracted)])
    model.eval()
    generator = task.build_generator([model], argparse.Namespace(beam=3, max_len_a=0, max_len_b=12))
    prompts = torch.tensor(
        [[5, 6, 7], [9, 10, task.dictionary.pad()], [4, task.dictionary.pad(), task.dictionary.pad()]]
    )
    sample = {"net_input": {"src_tokens": prompts, "src_lengths": torch.tensor([3, 2, 1])}}
    result = task.inference_step(generator, [model], sample)
    for hypotheses, prompt in zip(result, prompts, strict=True):
        assert len(hypotheses) == 3
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"][None]
            prefix = prompt[prompt.ne(task.dictionary.pad())]
            assert torch.equal(tokens[0, : len(prefix)], prefix)
            before = torch.cat([tokens.new_full((1, 1), task.dictionary.eos()), tokens[:, :-1]], 1)
            with torch.no_grad():
                scores = model.get_normalized_probs(model(before), log_probs=True)
            scores = scores.gather(2, tokens[..., None])[0, :, 0]
            torch.testing.assert_close(hypothesis["positional_scores"], scores, rtol=0, atol=1e-4)


def test_generate(extracted, text):
    done = passed("generate", text, "--path", extracted, "--gen-subset", "test", *GENERATING, "--prefix-size", 1)
    assert len({line for _, line in done.hypotheses().values()}) > 5


def test_an_extracted_network_is_trained_on(extracted, command, tmp_path):
    options = [word for word in command if word != "--search-space" and not str(word).endswith("tiny.yml")]
    options[options.index("supernet_language_modeling")] = "language_modeling"
    passed("train", *options, "--arch", "hat_transformer_lm", "--finetune-from-model", extracted,
           "--max-update", 10, "--disable-validation", "--save-dir", tmp_path)  # fmt: skip
    further, before = open_supernet(tmp_path / "checkpoint_last.pt"), open_supernet(extracted)
    assert further.space.largest() == SUBNET and further.space.cardinality() == 1
    assert further.evaluate(SUBNET)["loss"] < before.evaluate(SUBNET)["loss"] < math.log2(17)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        (["--criterion", "adaptive_loss"], "adaptive_loss"),
        (["--tokens-per-sample", 64], "64"),
        (["--context-length", 0], "--context-length is 0"),
        (["--past-target"], "--past-target"),
        (["--output-dictionary-size", 8], "--output-dictionary-size 8"),
        (["--search-space", "hat_small"], "hat_small"),
    ],
)
def test_wrong_options_end_in_one_line(command, tmp_path, options, value):
    common = [*command, "--arch", "mformer_language_small", "--max-update", 1, *options]
    assert_one_line(run("train", *common, "--save-dir", tmp_path), value)
    assert not list(tmp_path.iterdir())
