# Forty random images of two classes, a space of small networks, and a supernet of it; arguments go to the training.
python - <<'P'
from pathlib import Path

import numpy as np
from PIL import Image

for n in range(40):
    folder = Path("images", "ab"[n % 2])
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(n).integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(folder / f"{n}.png")
Path("tiny.yml").write_text(
    "fixed: {image_size: 16, patch_size: 8, head_dim: 32, relative_clip: 3}\n"
    "choices: {layers: [1, 2], embed_dim: [32, 64], ffn_dim: {options: [32, 64, 96, 128], per: layers},"
    " heads: {options: [1, 2], per: layers}}\n"
)
P
python -m timm_ext.train --data images --model mformer_cifar10_small_supernet --search-space tiny.yml --updates 1 \
    --batch-size 16 --output supernet "$@"
