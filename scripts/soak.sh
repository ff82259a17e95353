#!/usr/bin/env bash
# scripts/soak.sh [hours] [options of tests/e2e/soak.py]
#
# Looks for what the suite's few minutes do not show, for so many hours (1) on two cores: fuzzing
# under sanitizers, random models on the oldest and the newest ONNX Runtime, the thread sanitizer,
# loads in one process, and the whole of the suites that CI samples. Prints a table; ends with 1
# where anything was found. What it found goes to .deps/soak: crashes, the grown corpus, models that
# went wrong, and the number of the next random model, so that no two soaks do the same.
#
# It never runs beside a bench: both take .deps/measure.lock.
set -euo pipefail
cd "$(dirname "$0")/.."
hours=1
case ${1:-} in
[0-9]*)
    hours=$1
    shift
    ;;
esac
bash scripts/deps.sh --soak
state=$(cd .deps && pwd -P)/soak
mkdir -p "$state"
exec 8>"$state/lock" 9>.deps/measure.lock
flock -n 8 || {
    echo "soak: another soak runs" >&2
    exit 1
}
flock -n 9 || {
    echo "soak: waiting for a bench that holds .deps/measure.lock" >&2
    flock 9
}
jobs=2
need_fuzz() { # the same build as that of scripts/check.sh fuzz
    FUZZ_BUILD_ONLY=1 bash scripts/check.sh fuzz build/fuzz
}
need_fuzz
cmake -S . -B build -G Ninja -DPETOPT_WERROR=ON -DPETOPT_TESTS=ON >/dev/null
nice cmake --build build -j "$jobs"
export ORT_DISABLE_TELEMETRY=1
nice .deps/venv/bin/python3 -B tests/e2e/soak.py --hours "$hours" --state "$state" \
    --build build --fuzz build/fuzz --old .deps/venv-old/bin/python3 "$@"
