"""Compress a trained ViT of timm to half its size: `python examples/elastic_vit.py`, which writes elastic_vit.pt.

The ViT, trained on generated images, is converted to a supernet and used as its teacher. The best of 20 subnets with
at most half of the parameters is extracted.
"""

import timm
import torch
from torch.nn.functional import cross_entropy, one_hot

from nas_core.models import params_m
from nas_core.search import RandomConfig, RandomSearch, search
from timm_ext import elastic, write_subnet

torch.manual_seed(0)
labels = torch.randint(3, (48, 64))
images = torch.randn(48, 64, 3, 32, 32) + 0.07 * one_hot(labels, 3)[..., None, None]
vit = timm.create_model("test_vit", img_size=32, patch_size=8, depth=4, num_heads=4, num_classes=3)


def train(model, targets):  # a supernet trains another subnet in each update
    optimizer = torch.optim.AdamW(model.train().parameters(), 1e-3)
    for batch, target in zip(images[8:], targets[8:], strict=True):
        cross_entropy(model(batch), target).backward()
        optimizer.step(), optimizer.zero_grad()


def accuracy(supernet, architecture):  # on held-out images
    with torch.no_grad(), supernet.eval().use_architecture(architecture, freeze=True):
        return (supernet(images[:8].flatten(0, 1)).argmax(1) == labels[:8].flatten()).float().mean().item()


train(vit, labels)
converted, supernet = elastic(vit), elastic(vit)
train(supernet, torch.stack([vit(batch).detach().softmax(1) for batch in images]))
strategy = RandomSearch(supernet.space, {"params_m": (params_m, 0.1)}, RandomConfig(evaluations=20, batch=20))
best = search(strategy, lambda network: -accuracy(supernet, network), progress=False).best.architecture
write_subnet(supernet, best, "elastic_vit.pt")
for network in (supernet.space.largest(), best):
    before, after = accuracy(converted, network), accuracy(supernet, network)
    print(f"{params_m(network):.2f} M: {before:.0%} right, after training {after:.0%}")
