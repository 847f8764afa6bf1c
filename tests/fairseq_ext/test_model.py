"""One random subnet per update under fairseq's own translation task; decoding step by step."""

import pytest
import torch

from nas_core.space.hat import hat_draw
from nas_core.supernet.sampling import draw
from tests.fairseq_ext.running import SPACE, build, passed, run, subnet


def parameters(path):
    return torch.load(path, map_location="cpu", weights_only=True)["model"]


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        torch.testing.assert_close(first[name], second[name], rtol=0, atol=0, msg=name)


# -- which architecture an update trains -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["gene", "hat"])
def test_fairseqs_translation_task_trains_one_subnet_per_update(arguments, tmp_path, how):
    options = ["--architecture-draw", how, "--seed", 5, "--max-update", 4]
    done = passed("train", *arguments, *options, "--save-dir", tmp_path, "--disable-validation")
    expected = [hat_draw(SPACE, update) if how == "hat" else draw(SPACE, update, 5, how) for update in range(4)]
    assert done.drawn == expected


def test_resuming_continues_the_same_training(arguments, tmp_path):
    """The checkpoint is read by fairseq-train itself, dropout and all."""
    common = [*arguments, "--dropout", 0.1, "--clip-norm", 1.0, "--disable-validation"]
    full = run("train", *common, "--save-dir", tmp_path / "whole", "--max-update", 4)
    first = run("train", *common, "--save-dir", tmp_path / "parts", "--max-update", 2)
    second = run("train", *common, "--save-dir", tmp_path / "parts", "--max-update", 4)
    assert (full.code, first.code, second.code) == (0, 0, 0), second.err
    assert "Loaded checkpoint" in second.out and "@ 2 updates" in second.out
    assert len(full.drawn) == 4 and first.drawn + second.drawn == full.drawn
    assert_same(*(parameters(tmp_path / name / "checkpoint_last.pt") for name in ("whole", "parts")))


# -- decoding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("norm_first", "mos"), [(False, "neuron"), (True, "none")])
def test_steps_equal_the_full_forward(pair, batches, norm_first, mos):
    model = build(pair, mos=mos, normalize_before=norm_first).eval()
    inputs = batches[0]["net_input"]
    with torch.no_grad(), model.use_architecture(subnet()):
        full, _ = model(**inputs)
        encoder_out = model.encoder(inputs["src_tokens"], inputs["src_lengths"])
        state = {}
        for length in range(1, inputs["prev_output_tokens"].shape[1] + 1):
            tokens = inputs["prev_output_tokens"][:, :length]
            step, _ = model.decoder(tokens, encoder_out=encoder_out, incremental_state=state)
            torch.testing.assert_close(step[:, 0], full[:, length - 1], rtol=1e-5, atol=1e-5)


def test_reordering_rows_equals_decoding_the_reordered_batch(pair, batches):
    model = build(pair).eval()
    inputs = batches[0]["net_input"]
    order = torch.tensor([3, 3, 0, 5])
    tokens = inputs["prev_output_tokens"][:, :3]
    with torch.no_grad():
        encoder_out = model.encoder(inputs["src_tokens"], inputs["src_lengths"])
        moved = model.encoder.reorder_encoder_out(encoder_out, order)
        repeated = model.encoder.reorder_encoder_out(moved, torch.tensor([1, 2]))
        full, _ = model.decoder(tokens, encoder_out=encoder_out)
        torch.testing.assert_close(model.decoder(tokens[order], encoder_out=moved)[0], full[order])
        torch.testing.assert_close(model.decoder(tokens[order[[1, 2]]], encoder_out=repeated)[0], full[[3, 0]])
        state = {}
        for length in (1, 2):
            model.decoder(tokens[:, :length], encoder_out=encoder_out, incremental_state=state)
        model.decoder.reorder_incremental_state_scripting(state, order)
        step, _ = model.decoder(tokens[order], encoder_out=moved, incremental_state=state)
        torch.testing.assert_close(step[:, 0], full[order][:, 2], rtol=1e-5, atol=1e-5)
