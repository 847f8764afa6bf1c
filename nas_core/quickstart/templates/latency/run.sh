# Milliseconds of an ONNX file, from networks measured on this machine. Run in this folder: bash run.sh [YOURS.onnx]
set -euo pipefail
NETWORKS=${NETWORKS:-45}                                # measured networks; use 1000 or more for an accurate model
FAMILIES=${FAMILIES:-alexnet,squeezenet,vgg}            # see: nas-ext latency dataset --list
MODEL=${MODEL:-counts}                                  # ensemble with 200 networks or more
NET=${1:-out/net.onnx}                                  # file whose latency is predicted
export OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore
mkdir -p out
step() {
    echo "$1"; shift; "$@" >>out/log.txt 2>&1 || { tail -n 5 out/log.txt; echo "failed, see out/log.txt"; exit 1; }
}

make_net='import torch
from torch.nn import AdaptiveAvgPool2d as Pool, Conv2d, Flatten, Linear, MaxPool2d, ReLU, Sequential
net = Sequential(Conv2d(3, 48, 5, stride=2), ReLU(), MaxPool2d(2), Conv2d(48, 96, 3), ReLU(), Conv2d(96, 192, 3),
                 ReLU(), MaxPool2d(2), Conv2d(192, 384, 3), ReLU(), Pool(1), Flatten(), Linear(384, 100))
torch.onnx.export(net.eval(), (torch.zeros(1, 3, 160, 160),), "out/net.onnx", dynamo=False)'
[ $# -gt 0 ] || step "1/4 a network of another family: $NET" python -c "$make_net"
step "2/4 $NETWORKS networks of $FAMILIES, measured in onnxruntime" nas-ext latency dataset --out out/networks \
    --networks $NETWORKS --families $FAMILIES --set runtimes=onnxruntime --set visits=2 --set max_ms=100 --set clock=cpu
step "3/4 a model of their latency: $MODEL" nas-ext latency train --data out/networks --model $MODEL --all \
    --out out/model.safetensors --force
echo "4/4 $NET, predicted and measured"
python - "$NET" <<'END'
import statistics, sys, time, numpy, onnxruntime
from nas_core.latency.by_graph import predict_networks

found = predict_networks([sys.argv[1]], "out/model.safetensors")[0]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
inputs = {one.name: numpy.random.rand(*one.shape).astype("float32") for one in session.get_inputs()}
starts = [time.process_time() for _ in range(31) if session.run(None, inputs)]
measured = 1000 * statistics.median(b - a for a, b in zip(starts[5:], starts[6:]))
print(f"predicted {found.latency_ms:.1f} ms, give or take {found.std_ms:.1f}; measured {measured:.1f} ms")
END
