"""A translation supernet trained by fairseq for three updates, searched and generated with."""

import subprocess
from pathlib import Path

subprocess.run(["nas-ext", "quickstart", "translation", "words"], check=True)
for line in (
    "fairseq-preprocess -s en -t de --trainpref words/corpus/train --validpref words/corpus/valid"
    " --testpref words/corpus/test --joined-dictionary --destdir bin",
    "fairseq-train bin --task supernet_translation --arch mos_transformer_small --cpu"
    " --sampling sandwich --share-all-embeddings --optimizer adam --lr 3e-3 --max-tokens 1024 --max-update 3"
    " --save-dir supernet",
    "nas-ext search --checkpoint supernet/checkpoint_last.pt --limit params_m=4 --evaluations 10"
    " --valid-samples 10 --no-measure --finalists 1 --out run",
):
    subprocess.run(line.split(), check=True)
(found,) = Path("run/finalists").glob("*.json")
for line in (
    f"nas-ext extract --checkpoint supernet/checkpoint_last.pt --arch {found} --out subnet.pt",
    "fairseq-generate bin --path subnet.pt --beam 4 --cpu --quiet",
):
    subprocess.run(line.split(), check=True)
