"""fairseq's decoding commands on a supernet's subnet."""

import argparse

import pytest
import torch
from fairseq import checkpoint_utils

from tests.fairseq_ext.running import DECODING, USER_DIR, passed, shell, subnet


@pytest.fixture(scope="module")
def model(trained, architecture_file):
    overrides = {"eval_subnet": str(architecture_file)}
    (model,), _ = checkpoint_utils.load_model_ensemble([str(trained("neuron"))], arg_overrides=overrides)
    assert model.eval().architecture == subnet()
    return model


@pytest.fixture(scope="module")
def sample(pair):
    dataset = pair.dataset("test")
    sample = dataset.collater([dataset[row] for row in range(len(dataset))])
    assert len(set(sample["net_input"]["src_lengths"].tolist())) > 4
    return sample


def test_scores_are_those_of_the_full_forward(pair, model, sample):
    generator = pair.build_generator([model], argparse.Namespace(beam=4, max_len_a=1.5, max_len_b=5))
    for row, hypotheses in enumerate(generator.generate([model], sample)):
        assert len(hypotheses) == 4
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"][None]
            previous = torch.cat([tokens.new_full((1, 1), pair.target_dictionary.eos()), tokens[:, :-1]], 1)
            with torch.no_grad():
                output = model(sample["net_input"]["src_tokens"][row, None], None, previous)
                scores = model.get_normalized_probs(output, log_probs=True)
            scores = scores.gather(2, tokens[..., None])[0, :, 0]
            torch.testing.assert_close(hypothesis["positional_scores"], scores, rtol=0, atol=1e-4)
            torch.testing.assert_close(hypothesis["score"], scores.mean(), rtol=0, atol=1e-4)


def test_generate_does_not_depend_on_batches(trained, corpus):
    common = [corpus, "--path", trained("neuron"), *DECODING]
    first, second = (passed("generate", *common, "--batch-size", size).hypotheses() for size in (1, 20))
    assert len(first) == 20 and len({text for _, text in first.values()}) > 5
    for row, (score, text) in first.items():
        assert second[row] == (pytest.approx(score, abs=2e-4), text)


def test_the_commands_as_a_user_types_them(arguments, tmp_path):
    """A shell, the folder printed by ``nas-ext lab user-dir``, and a training as a process."""
    user_dir = shell("nas-ext", "lab", "user-dir").out.strip()
    assert user_dir == USER_DIR
    options = ["--user-dir", user_dir, "--task", "supernet_translation", "--sampling", "sandwich"]
    trained = shell("fairseq-train", *arguments, *options, "--max-update", 1, "--save-dir", tmp_path)
    assert trained.code == 0 and (tmp_path / "checkpoint_best.pt").is_file(), trained.err
