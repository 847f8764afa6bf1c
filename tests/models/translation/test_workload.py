import pytest
import torch

from nas_core.errors import ArchitectureError, ConfigError, SpaceError
from nas_core.latency import TimingConfig, measure
from nas_core.models.translation import TranslationWorkload, TranslationWorkloadConfig
from nas_core.space import Choice, SearchSpace, get_space

CONFIG = TranslationWorkloadConfig(source_vocab=50, target_vocab=60, source_length=6, target_length=5, beam=3)


def test_encodes_once_and_decodes_every_step_with_reordering(monkeypatch):
    from nas_core.models.translation import net as translation

    space, counts = get_space("hat_small"), {"encode": [], "step": [], "reorder": []}
    encode, step = translation.TranslationNet.encode, translation.TranslationNet.step
    reorder = translation.DecoderCache.reorder

    def counted(name, function):
        def call(*args, **kwargs):
            counts[name].append(args[-1] if name == "reorder" else args[2])
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(translation.TranslationNet, "encode", counted("encode", encode))
    monkeypatch.setattr(translation.TranslationNet, "step", counted("step", step))
    monkeypatch.setattr(translation.DecoderCache, "reorder", counted("reorder", reorder))
    workload = TranslationWorkload(space, space.smallest(), CONFIG)
    with torch.inference_mode():
        workload.encode()
        logits = workload.decode()
    assert logits.shape == (3, 60)
    assert [tuple(tokens.shape) for tokens in counts["encode"]] == [(1, 6)]
    assert [tuple(tokens.shape) for tokens in counts["step"]] == [(3,)] * 5
    assert [order.tolist() for order in counts["reorder"]] == [[2, 1, 0]] * 5


def test_the_network_is_static_and_in_evaluation_mode():
    space = get_space("hat_small")
    small, large = (TranslationWorkload(space, a, CONFIG) for a in (space.smallest(), space.largest()))
    sizes = [sum(p.numel() for p in workload.modules[0].parameters()) for workload in (small, large)]
    assert sizes[0] < 0.7 * sizes[1]  # its own size, not a slice of the largest
    assert not any(module.training for module in small.modules[0].modules())


def test_caller_s_random_numbers_are_left_alone():
    space = get_space("hat_small")
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    TranslationWorkload(space, space.smallest(), CONFIG)
    assert torch.equal(torch.rand(1), expected)


def test_measured_parts_are_encoder_and_decoder():
    space = get_space("hat_small")
    workload, reference = (TranslationWorkload(space, a, CONFIG) for a in (space.largest(), space.smallest()))
    found = measure(workload, reference, TimingConfig(repeats=3, warmup=1))
    assert set(found.parts_ms) == {"encoder", "decoder"}
    assert found.parts_ms["decoder"] > found.parts_ms["encoder"] > 0
    assert found.relative > 1


def test_wrong_inputs():
    space = get_space("hat_small")
    with pytest.raises(ArchitectureError, match="qkv_dim"):
        TranslationWorkload(space, get_space("hat_wmt14_en_de").largest(), CONFIG)
    tiny = SearchSpace("tiny", [Choice.make("size", [1, 2])])
    with pytest.raises(SpaceError, match="'tiny' does not hold translation architectures"):
        TranslationWorkload(tiny, tiny.largest(), CONFIG)
    with pytest.raises(ConfigError, match="beam is 0"):
        TranslationWorkloadConfig(beam=0)
    with pytest.raises(ConfigError, match="source_vocab is 4"):
        TranslationWorkloadConfig(source_vocab=4)
