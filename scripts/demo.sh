#!/usr/bin/env bash
# Installs what is missing, builds petopt, optimises a real model and prints what came of it: the OCR
# text detector of the PyPI package rapidocr-onnxruntime, pinned to an image of 640x640, one thread.
#
#   scripts/demo.sh [petopt options]
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/deps.sh
cmake -S . -B build -G Ninja >/dev/null
cmake --build build -j "$(nproc)" --target petopt
set -x
build/petopt .deps/models/ch_PP-OCRv4_det_infer.onnx -o build/demo.onnx \
    --input-shape x:1,3,640,640 --threads 1 "$@"
