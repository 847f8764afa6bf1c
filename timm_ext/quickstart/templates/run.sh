# From a folder of images to a small timm model. Run in this folder: bash run.sh
set -euo pipefail; cd "$(dirname "$0")"
IMAGES=images                    # train/ and val/, each with a folder per class
UPDATES=${UPDATES:-200}          # updates of the supernet; your own images need thousands
EVALUATIONS=${EVALUATIONS:-30}   # networks that the search evaluates
LIMIT=${LIMIT:-0.5}              # largest number of parameters in millions
export OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore
rm -rf out && mkdir out
step() {
    echo "$1"; shift; "$@" >>out/log.txt 2>&1 || { tail -n 5 out/log.txt; echo "failed, see out/log.txt"; exit 1; }
}

step "1/4 one supernet for all networks of mformer_cifar10_small: $UPDATES updates" python -m timm_ext.train \
    --data "$IMAGES" --model mformer_cifar10_small_supernet --updates $UPDATES --warmup-updates $((UPDATES / 10)) \
    --batch-size 32 --lr 2e-3 --scale 0.8 --valid-random 0 --output out/supernet
step "2/4 the best of $EVALUATIONS networks of at most $LIMIT M parameters" nas-ext search --out out/run \
    --checkpoint out/supernet/best.pt --limit params_m="$LIMIT" --evaluations $EVALUATIONS \
    --finalists 3 --no-measure
step "    a page about the search" nas-ext report out/run
step "3/4 that network alone: out/subnet.safetensors" nas-ext extract --checkpoint out/supernet/best.pt \
    --arch out/run/best.json --out out/subnet.safetensors
echo "4/4 it is a timm model: its accuracy on $IMAGES/val"
python - out/run/best.json "$IMAGES/val" <<'END'
import sys, timm_ext, timm, torch  # timm_ext first: it registers the models
from timm.data import ImageDataset, create_transform, resolve_model_data_config

classes = len(set(ImageDataset(sys.argv[2]).reader.class_to_idx))
options = dict(subnet=sys.argv[1], num_classes=classes, checkpoint_path="out/subnet.safetensors")
model = timm.create_model("mformer_cifar10_small", **options).eval()
images = ImageDataset(sys.argv[2], transform=create_transform(**resolve_model_data_config(model)))
with torch.no_grad():
    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in torch.utils.data.DataLoader(images, 50))
size = sum(weight.numel() for weight in model.parameters()) / 1e6
said = f"{right / len(images):.0%} of {len(images)} images right with {size:.2f} M parameters"
print(said + "; all networks tried: out/run/report.html")
END
