#!/usr/bin/env bash
# Installs what is missing, builds petopt, runs the whole test suite; ends in ctest's summary.
#
#   scripts/test.sh [ctest options]     for example: scripts/test.sh -L unit
#
# The build goes to build/, as by hand.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/deps.sh
jobs=$(nproc)
cmake -S . -B build -G Ninja -DPETOPT_WERROR=ON -DPETOPT_TESTS=ON
cmake --build build -j "$jobs"
cd build
# What the tests themselves run in ONNX Runtime: its own builds call home unless told not to.
export ORT_DISABLE_TELEMETRY=1
exec ctest --output-on-failure -j "$jobs" "$@" </dev/null
