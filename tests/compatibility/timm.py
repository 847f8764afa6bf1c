"""Image models by their names in timm, trained for two updates and searched."""

import subprocess
import sys

import timm_ext  # before timm: it repairs torchvision with a CPU torch  # isort: skip

import timm
import torch

assert "mformer_cifar10_small_supernet" in timm.list_models("mformer*")
model = timm.create_model("mformer_cifar10_small_supernet", num_classes=10)
model(torch.randn(2, 3, 32, 32)).sum().backward()
timm_ext.write_subnet(model, model.space.smallest(), "subnet.safetensors")
assert timm_ext.load_model("subnet.safetensors")

for line in (
    "nas-ext quickstart images shapes",
    f"{sys.executable} -m timm_ext.train --data shapes/images --model mformer_cifar10_small_supernet --updates 2"
    " --valid-random 0 --output trained",
    "nas-ext search --checkpoint trained/best.pt --strategy random --set evaluations=3 --no-measure"
    " --finalists 1 --out run",
):
    subprocess.run(line.split(), check=True)
