"""Train an image supernet and extract a small timm model: `python examples/timm_supernet.py [FOLDER]`.

Trains on generated images, evaluates 20 subnets of at most 0.5 million parameters, and loads the best one with timm.
For your images use `python -m timm_ext.train`.
"""

import sys
from pathlib import Path

import timm
import torch
from torch.nn.functional import cross_entropy, one_hot

from nas_core.models import params_m
from nas_core.search import RandomConfig, RandomSearch, search
from timm_ext import write_subnet

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/timm_supernet")
torch.manual_seed(0)
supernet = timm.create_model("mformer_cifar10_small_supernet", num_classes=3)
optimizer = torch.optim.AdamW(supernet.parameters(), 1e-3)
for _ in range(30):
    labels = torch.randint(3, (32,))
    images = torch.randn(32, 3, 32, 32) + 0.3 * one_hot(labels, 3)[..., None, None]
    optimizer.zero_grad()
    cross_entropy(supernet.train()(images), labels).backward()
    optimizer.step()


def evaluate(architecture):  # on the last batch; use held-out images in practice
    with torch.no_grad(), supernet.eval().use_architecture(architecture, freeze=True):
        return cross_entropy(supernet(images), labels).item()


strategy = RandomSearch(supernet.space, {"params_m": (params_m, 0.5)}, RandomConfig(evaluations=20, batch=20))
best = search(strategy, evaluate, folder / "run", progress=False).best.architecture
write_subnet(supernet, best, file := folder / "subnet.pt")
model = timm.create_model("mformer_cifar10_small", num_classes=3, subnet=best, checkpoint_path=str(file)).eval()
print(f"{params_m(best):.2f} M parameters, {(model(images).argmax(1) == labels).float().mean():.0%} right: {best!r}")
