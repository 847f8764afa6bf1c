"""Language models through fairseq's commands: training, resuming, validation, scoring and generation."""

from __future__ import annotations

import argparse
import math

import pytest
import torch
from fairseq import checkpoint_utils

from nas_core.supernet import open_supernet
from tests.fairseq_ext.language.tiny import subnet
from tests.fairseq_ext.running import USER_DIR, assert_one_line, passed, run

GENERATING = ["--user-dir", USER_DIR, "--task", "language_modeling", "--beam", 3, "--num-workers", 0, "--cpu",
              "--max-len-b", 14, "--max-len-a", 0, "--sample-break-mode", "eos"]  # fmt: skip


def test_a_supernet_learns_and_validates_fixed_subnets(command, tmp_path):
    options = ["--arch", "mos_transformer_lm_small", "--max-update", 30, "--sampling", "sandwich"]
    done = passed("train", *command, *options, "--validate-interval-updates", 15, "--save-dir", tmp_path)
    valid = done.stats("valid")
    assert valid[-1]["valid_loss"] < valid[0]["valid_loss"] < 4.5
    parts = [valid[-1][f"valid_{name}_loss"] for name in ("smallest", "largest", "random1", "random2")]
    assert len(set(parts)) > 2 and valid[-1]["valid_loss"] == pytest.approx(sum(parts) / 4, abs=2e-3)


def test_resumed_training_is_the_uninterrupted_one(command, tmp_path):
    options = [*command, "--arch", "mos_mformer_language_small", "--disable-validation", "--seed", 3]
    states = []
    for folder, updates in (("whole", (4,)), ("parts", (2, 4))):
        for update in updates:
            passed("train", *options, "--max-update", update, "--save-dir", tmp_path / folder)
        states.append(torch.load(tmp_path / folder / "checkpoint_last.pt", weights_only=True)["model"])
    assert states[0].keys() == states[1].keys()
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name


def test_positions_that_are_trained_and_a_longer_context(command, tmp_path):
    options = ["--arch", "mformer_language_small", "--positions", "learned", "--context-length", 40, "--max-update", 2]
    passed("train", *command, *options, "--tokens-per-sample", 40, "--save-dir", tmp_path)
    supernet = open_supernet(tmp_path / "checkpoint_last.pt")
    assert supernet.space.fixed["context_length"] == 40
    assert supernet.model.net.positions.table.shape == (40, 16)
    assert supernet.model.max_positions() == 40


def test_eval_lm_scores_what_the_host_evaluates(supernet_of, text, subnet_file, tmp_path):
    path = tmp_path / "subnet.pt"
    supernet = open_supernet(supernet_of("mos_mformer_language_small"))
    supernet.extract(subnet(), path)
    common = [text, "--user-dir", USER_DIR, "--cpu", "--gen-subset", "valid", "--tokens-per-sample", 24]
    overrides = ["--model-overrides", repr({"eval_subnet": str(subnet_file)})]
    found = []
    for checkpoint, more in ((path, []), (supernet_of("mos_mformer_language_small"), overrides)):
        done = passed("eval_lm", *common, "--task", "language_modeling", "--path", checkpoint, *more, "--batch-size", 4)
        (line,) = [line for line in done.out.splitlines() if "Loss (base 2)" in line]
        found.append(float(line.split("Loss (base 2):")[1].split(",")[0]))
    metrics = supernet.evaluate(subnet())
    assert found == [pytest.approx(metrics["nll_loss"], abs=2e-3)] * 2
    assert metrics["ppl"] == pytest.approx(2 ** metrics["nll_loss"]) and metrics["loss"] == metrics["nll_loss"]


@pytest.fixture(scope="module")
def extracted(supernet_of, tmp_path_factory):
    path = tmp_path_factory.mktemp("extracted") / "subnet.pt"
    open_supernet(supernet_of("mformer_language_small")).extract(subnet(), path)
    return path


def test_generated_text_is_the_likeliest_by_the_full_forward(extracted, text):
    """Beam search step by step scores as all positions at once do."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(extracted)])
    model.eval()
    generator = task.build_generator([model], argparse.Namespace(beam=3, max_len_a=0, max_len_b=12))
    prompts = torch.tensor(
        [[5, 6, 7], [9, 10, task.dictionary.pad()], [4, task.dictionary.pad(), task.dictionary.pad()]]
    )
    sample = {"net_input": {"src_tokens": prompts, "src_lengths": torch.tensor([3, 2, 1])}}
    found = task.inference_step(generator, [model], sample)
    for hypotheses, prompt in zip(found, prompts, strict=True):
        assert len(hypotheses) == 3
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"][None]
            given = prompt[prompt.ne(task.dictionary.pad())]
            assert torch.equal(tokens[0, : len(given)], given)
            before = torch.cat([tokens.new_full((1, 1), task.dictionary.eos()), tokens[:, :-1]], 1)
            with torch.no_grad():
                scores = model.get_normalized_probs(model(before), log_probs=True)
            scores = scores.gather(2, tokens[..., None])[0, :, 0]
            torch.testing.assert_close(hypothesis["positional_scores"], scores, rtol=0, atol=1e-4)


def test_generate_and_interactive_say_the_same(extracted, text, tmp_path):
    done = passed("generate", text, "--path", extracted, "--gen-subset", "test", *GENERATING, "--prefix-size", 1)
    assert len(done.hypotheses()) == 20
    lines = (text.parent / "test").read_text().splitlines()
    (tmp_path / "in.txt").write_text("".join(line.split()[0] + "\n" for line in lines))
    options = ["--input", tmp_path / "in.txt", "--buffer-size", 8, "--batch-size", 4]
    spoken = passed("interactive", text, "--path", extracted, *GENERATING, *options)
    found = spoken.hypotheses()
    assert len(found) == 20 and all(line.split()[0] == lines[row].split()[0] for row, (_, line) in found.items())
    assert len({line for _, line in found.values()}) > 5


def test_an_extracted_network_is_trained_on(extracted, command, tmp_path):
    options = [each for each in command if each not in ("--search-space", "supernet_language_modeling")]
    options = [each for each in options if not str(each).endswith("tiny.yml")]
    options[options.index("--task") : options.index("--task") + 1] = ["--task", "language_modeling"]
    passed("train", *options, "--arch", "hat_transformer_lm", "--finetune-from-model", extracted,
               "--max-update", 30, "--save-dir", tmp_path)  # fmt: skip
    further, before = open_supernet(tmp_path / "checkpoint_last.pt"), open_supernet(extracted)
    assert further.space.largest() == subnet() and further.space.cardinality() == 1
    assert further.evaluate(subnet())["loss"] < before.evaluate(subnet())["loss"] < math.log2(17)


def test_wrong_options_end_in_one_line(command, supernet_of, tmp_path):
    mformer = ["--arch", "mformer_language_small"]
    trained = ["--restore-file", supernet_of("mformer_language_small"), "--max-update", 100]
    for options, parts in [
        ([*mformer, "--criterion", "adaptive_loss"], ["adaptive softmax", "cross_entropy"]),
        ([*mformer, "--tokens-per-sample", 64], ["64", "26", "--context-length 64"]),
        ([*mformer, "--context-length", 0], ["--context-length is 0"]),
        ([*mformer, "--past-target"], ["--past-target", "next token"]),
        ([*mformer, "--output-dictionary-size", 8], ["--output-dictionary-size 8"]),
        ([*mformer, "--search-space", "hat_small"], ["hat_small", "no gene 'layers'"]),
        (["--arch", "mos_transformer_lm_small", *trained], ["does not fit"]),
    ]:
        done = run("train", *command, "--max-update", 1, *options, "--save-dir", tmp_path)
        assert_one_line(done, *parts)
        assert not list(tmp_path.iterdir())
    own = ("--search-space", "--mos-router-hidden")
    plain = [word for index, word in enumerate(command) if not {word, command[index - 1]} & set(own)]
    done = run("train", *plain, "--arch", "transformer_lm", "--decoder-layers", 1, "--max-update", 1)
    assert_one_line(done, "--arch mos_transformer_lm*", "language_modeling")
