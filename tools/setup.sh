#!/usr/bin/env bash
# Brings .venv up to date in the one order that works: torch (and torchvision, where an index is given that has both),
# then the build tools, then fairseq (source only; it compiles against the torch it finds), then this project. Each
# step leaves a stamp naming what it installed, so that an interrupted run goes on where it stopped and a finished one
# costs a checksum.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON=${PYTHON:-python3.11}
CXX=${CXX:-g++}
TORCH_VERSION=${TORCH_VERSION:-2.13.0}
TORCH_INDEX=${TORCH_INDEX:-}
TORCHVISION=$(sed -n 's/^timm = .*"\(torchvision[^"]*\)".*/\1/p' pyproject.toml)
FAIRSEQ=$(sed -n 's/.*"\(fairseq-fixed==[^"]*\)".*/\1/p' pyproject.toml)
PY=.venv/bin/python
STAMPS=.venv/.nas-ext

die() { echo "nas-ext setup: $*" >&2; exit 1; }

# Folder and packages are part of the key: an editable install only knows those it found when it was made.
packages=$(for init in nas_core/__init__.py *_ext/__init__.py; do [ -f "$init" ] && echo -n "${init%/*} "; done || true)
ready="$PWD: $packages torch $TORCH_VERSION, $(cat pyproject.toml setup.py tools/setup.sh nas_core/startup.py | cksum)"
is_done() { [ -x $PY ] && [ "$(cat "$STAMPS/$1" 2>/dev/null)" = "$2" ]; }
# An index given once stays: without it the next `make demo` would make another environment.
[ -n "$TORCH_INDEX" ] || TORCH_INDEX=$(cat "$STAMPS/index" 2>/dev/null || true)
ready+="${TORCH_INDEX:+, index $TORCH_INDEX}"
is_done ready "$ready" && exit 0

need_python() {
    command -v "$PYTHON" >/dev/null || die "$PYTHON not found: install Python 3.11 with its headers" \
        "(Debian/Ubuntu: sudo apt install python3.11-dev python3.11-venv)" \
        "or say where it is, make setup PYTHON=/path/to/python3.11"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        die "$PYTHON does not run as Python 3.11 or newer: give one that does, make setup PYTHON=/path/to/python3.11"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
        echo "nas-ext setup: $("$PYTHON" --version) is untried, fairseq is known to work on Python 3.11 only" >&2
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
        die "$PYTHON cannot make virtual environments: install its venv module" \
            "(Debian/Ubuntu: sudo apt install python3.11-venv)"
}

need_compiler() {  # for the interpreter $1
    command -v "$CXX" >/dev/null || die "C++ compiler $CXX not found, fairseq is compiled on installation: install it" \
        "(Debian/Ubuntu: sudo apt install g++) or name another, make setup CXX=/path/to/compiler"
    local include
    include=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ -f "$include/Python.h" ] || die "Python.h not found in $include, fairseq is compiled on installation:" \
        "install the headers (Debian/Ubuntu: sudo apt install python3.11-dev)"
}

# step NAME KEY TEXT COMMAND...: run COMMAND unless the stamp NAME already says KEY; its output goes to a log.
step() {
    local name=$1 key=$2 text=$3 log="$STAMPS/$1.log"
    shift 3
    is_done "$name" "$key" && return
    echo "nas-ext setup: $text"
    if ! "$@" >"$log" 2>&1; then
        grep -v '^WARNING' "$log" | tail -n 15 >&2
        die "the step '$name' failed: the whole log is $log; run the same command again to go on from this step"
    fi
    echo "$key" >"$STAMPS/$name.new" && mv "$STAMPS/$name.new" "$STAMPS/$name"
}

pip() { $PY -m pip --disable-pip-version-check --no-input "$@"; }

install_torch() {
    (
        [ -z "$TORCH_INDEX" ] || export PIP_INDEX_URL="$TORCH_INDEX"
        pip install "torch==$TORCH_VERSION"
    ) &&
        $PY -c 'import torch'
}

install_fairseq() {
    # With CUDA_HOME set fairseq tries to build CUDA kernels whose sources its archive lacks.
    (
        unset CUDA_HOME
        export CFLAGS="-O1 -g0" MAX_JOBS="${MAX_JOBS:-2}" CXX
        pip install --no-build-isolation -c $STAMPS/constraints.txt "$FAIRSEQ"
    ) &&
        $PY -c 'import fairseq'
}

# PyPI's torchvision is a CUDA build. Beside another torch it is replaced by the one from torch's index; where there is
# none, nas_core/startup.py repairs it when it is imported.
install_torchvision() {
    local build='import importlib.metadata as m, sys; print(m.version(sys.argv[1]).partition("+")[2])'
    [ "$($PY -c "$build" torch)" = "$($PY -c "$build" torchvision 2>&1)" ] && return
    pip uninstall -y torchvision
    PIP_INDEX_URL="$TORCH_INDEX" pip install -c $STAMPS/constraints.txt "$TORCHVISION" ||
        echo "none of $TORCHVISION for torch $TORCH_VERSION in $TORCH_INDEX"
}

# fairseq brings PyPI's torchaudio, a CUDA build too, for its speech tasks alone. Beside another torch it does not import,
# and stops packages that import it where they find it, such as transformers. It goes after the check of dependencies,
# of which it is one.
remove_broken_torchaudio() {
    $PY -c 'import torchaudio' || pip uninstall -y torchaudio
}

install_project() {
    pip install --no-build-isolation -c $STAMPS/constraints.txt -e '.[fairseq,timm,hf,nni,optuna,onnx,submitit,docs,dev]' &&
        pip check &&
        remove_broken_torchaudio
}

works() { [ -x $PY ] && $PY -m pip --version >/dev/null 2>&1; }
works || need_python
is_done fairseq "$TORCH_VERSION $FAIRSEQ" || need_compiler "$(works && echo $PY || echo "$PYTHON")"
if ! works; then
    echo "nas-ext setup: making .venv with $("$PYTHON" --version)"
    "$PYTHON" -m venv --clear .venv || die "cannot make .venv with $PYTHON: see the message above"
fi
mkdir -p $STAMPS
if command -v flock >/dev/null; then  # two targets started at once must not install at once
    exec 9>"$STAMPS/lock"
    flock -n 9 || { echo "nas-ext setup: waiting for another setup in this folder to end"; flock 9; }
    is_done ready "$ready" && exit 0
fi
echo "torch==$TORCH_VERSION" >$STAMPS/constraints.txt
[ -z "$TORCH_INDEX" ] || echo "$TORCH_INDEX" >$STAMPS/index

step torch "$TORCH_VERSION" "1/4 torch $TORCH_VERSION" install_torch
[ -z "$TORCH_INDEX" ] ||
    step torchvision "$TORCH_VERSION $TORCH_INDEX" "1/4 torchvision from the same index" install_torchvision
step tools "setuptools<81" "2/4 build tools" pip install 'setuptools>=77,<81' wheel 'cython>=3' 'numpy>=1.26,<3' ninja
step fairseq "$TORCH_VERSION $FAIRSEQ" "3/4 $FAIRSEQ (compiled here, some minutes)" install_fairseq
step project "$ready" "4/4 nas-ext with its extras fairseq, timm, hf, nni, optuna, onnx, submitit, docs and dev" install_project
echo "$ready" >$STAMPS/ready
echo "nas-ext setup: ready; the commands are in .venv/bin (nas-ext doctor shows what is usable)"
