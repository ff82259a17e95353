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
exec ctest --output-on-failure -j "$jobs" "$@" </dev/null
