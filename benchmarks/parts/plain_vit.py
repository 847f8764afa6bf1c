"""``python -m benchmarks.parts.plain_vit``: train a ``VisionTransformer`` and save it like timm's trainer.

timm's trainer is not in its package. The recipe is for small images on one device: AdamW, cosine schedule, crops, flips
and label smoothing, with the training and held-out images of ``timm_ext.train``.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import timm
import torch
from timm.data import create_loader
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from torch import nn

from nas_core.files.writing import atomic_output, write_json
from nas_core.random_streams import seed_streams
from timm_ext.data import ImageSet, open_splits
from timm_ext.models import CIFAR10_MEAN, CIFAR10_STD

MODEL = "vit_tiny_patch16_224"
SIZES = {"img_size": 32, "patch_size": 4, "embed_dim": 128, "depth": 6, "num_heads": 4}
"""Changed settings of the model: 64 tokens of 32 x 32 pixels, small enough for a CPU."""
PREPROCESSING = {"mean": CIFAR10_MEAN, "std": CIFAR10_STD, "crop_pct": 1.0, "interpolation": "bicubic"}


def loader(images: ImageSet, batch: int, training: bool) -> Any:
    augmented = {"scale": (0.6, 1.0), "ratio": (0.9, 1.1), "hflip": 0.5} if training else {}
    return create_loader(
        images, (3, 32, 32), batch, is_training=training, use_prefetcher=False, num_workers=0, pin_memory=False,
        persistent_workers=False, **PREPROCESSING, **augmented,
    )  # fmt: skip


def top1(model: nn.Module, batches: Any) -> float:
    """Return the percentage of correctly classified images."""
    model.eval()
    correct = total = 0
    with torch.inference_mode():
        for images, labels in batches:
            correct += int((model(images).argmax(1) == labels).sum())
            total += len(labels)
    return 100 * correct / total


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--val-data", type=Path, required=True)
    parser.add_argument("--val-count", type=int, default=5000, help="number of held-out training images")
    parser.add_argument("--train-count", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--patch-size", type=int, default=SIZES["patch_size"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    images, _ = open_splits(args.data, None, args.val_count, 1, args.train_count)
    test, _ = open_splits(args.val_data, args.val_data, 0, 1, 0)
    seed_streams(args.seed)
    sizes = {**SIZES, "patch_size": args.patch_size}
    model = timm.create_model(MODEL, num_classes=images.source.classes, **sizes)
    criterion = LabelSmoothingCrossEntropy(0.1)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=args.lr, weight_decay=0.05)
    batches, test_batches = loader(images, args.batch_size, True), loader(test, 500, False)
    total, update, history = args.epochs * len(batches), 0, []
    for epoch in range(args.epochs):
        model.train()
        for inputs, labels in batches:
            rate = args.lr * min((update + 1) / 300, 0.5 + 0.5 * math.cos(math.pi * update / total))
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            criterion(model(inputs), labels).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            update += 1
        history.append({"epoch": epoch + 1, "top1": round(top1(model, test_batches), 2)})
        print(history[-1], flush=True)
        settings = argparse.Namespace(model=MODEL, num_classes=images.source.classes, model_kwargs=sizes)
        vars(settings).update(
            {name: value for name, value in PREPROCESSING.items() if name != "crop_pct"}, crop_pct=1.0
        )
        state = {"epoch": epoch, "arch": MODEL, "state_dict": model.state_dict(), "args": settings, "version": 2}
        with atomic_output(args.out) as temporary:
            torch.save({**state, "metric": history[-1]["top1"]}, temporary)
        write_json(args.out.with_suffix(".json"), history)


if __name__ == "__main__":
    main()
