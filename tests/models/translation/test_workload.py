import torch

from nas_core.models.translation.workload import TranslationWorkload, TranslationWorkloadConfig
from nas_core.space import get_space

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
