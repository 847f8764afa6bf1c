"""``nas-ext quickstart encoder``: generated texts, and a script that trains and compresses a small encoder."""

from __future__ import annotations

import random
from collections.abc import Mapping

from nas_core.quickstart import Quickstart

TEXTS = {"train": 3000, "valid": 150}
TOPICS = (
    ("dog cat horse wolf fox", "chases follows watches fears", "bird mouse rabbit sheep duck", "forest field barn"),
    ("cook baker guest waiter", "eats serves tastes cuts", "bread soup cake apple cheese", "kitchen cafe inn"),
    ("teacher student writer child", "reads writes copies", "book letter story poem word", "school library"),
    ("sailor captain fisher pilot", "steers repairs sinks paints", "boat ship raft sail anchor", "harbour bay port"),
)
"""Subjects, verbs, objects and places of each topic."""
ADJECTIVES = ("old", "young", "small", "large", "brown", "quiet", "happy", "tired", "strong", "cold")


def sentence(stream: random.Random) -> str:
    """Return a random sentence about one topic."""
    subject, verb, thing, place = (stream.choice(words.split()) for words in stream.choice(TOPICS))
    adjectives = [f"{stream.choice(ADJECTIVES)} " * stream.randint(0, 1) for _ in range(2)]
    return f"the {adjectives[0]}{subject} {verb} the {adjectives[1]}{thing} in the {place}"


def data() -> Mapping[str, str | bytes]:
    """Return texts about four topics, and their vocabulary."""
    stream = random.Random(0)
    texts = {split: [sentence(stream) for _ in range(count)] for split, count in TEXTS.items()}
    words = sorted({word for lines in texts.values() for line in lines for word in line.split()})
    contents = {f"texts/{split}.txt": "\n".join(lines) + "\n" for split, lines in texts.items()}
    return {**contents, "vocab.txt": "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n"}


ENCODER = Quickstart(
    "encoder", "make a trained encoder of Hugging Face faster, from a folder to a smaller folder",
    "hf_ext/quickstart/templates", data, modules=("transformers", "accelerate"), extra="hf", minutes=3.0,
)  # fmt: skip
