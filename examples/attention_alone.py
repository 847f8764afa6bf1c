"""Use cosFormer's linear attention without a network: `python examples/attention_alone.py [TOKENS ..]`.

Prints the difference between decoding step by step and all positions at once, and times for several lengths.
"""

import sys
import time

import torch
import torch.nn.functional as F

from nas_core.layers.attention.cosformer import CosformerState, cosformer_attention


def inputs(tokens, batch=1, heads=4, dim=32):
    return torch.randn(3, batch, heads, tokens, dim, generator=torch.Generator().manual_seed(0))


def best_ms(attend, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        attend()
        times.append((time.perf_counter() - start) * 1e3)
    return min(times)


q, k, v = inputs(100)
together = cosformer_attention(q, k, v, max_length=100, causal=True)
state = CosformerState.empty(k[:, :, :1], v.shape[-1], max_length=100)
steps = [state.step(*(x[:, :, i : i + 1] for x in (q, k, v))) for i in range(100)]
print(f"100 steps and all at once differ by at most {(torch.cat(steps, 2) - together).abs().max():.1e}")
for tokens in map(int, sys.argv[1:] or ("512", "2048", "8192")):
    q, k, v = inputs(tokens)
    linear = best_ms(lambda q=q, k=k, v=v, n=tokens: cosformer_attention(q, k, v, max_length=n, causal=True))
    softmax = best_ms(lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    print(f"{tokens:6d} tokens: linear {linear:8.1f} ms, softmax {softmax:8.1f} ms")
