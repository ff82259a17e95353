#!/usr/bin/env bash
# scripts/check.sh format|format-check|tidy|clang-check|sanitize|thread-sanitize|fuzz|corpus|edges|
#                  coverage [build folder]
# The checks behind the targets of cmake/checks.cmake. Files are those that git tracks, and new ones
# that it does not ignore; without git, all under the source folders.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?usage: scripts/check.sh CHECK [build folder], CHECK as at the top of this script}
build=${2:-build}
dirs=(include src onnx models tests bench)

list() {
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard -- "${dirs[@]}"
    else
        find "${dirs[@]}" -type f 2>/dev/null || true
    fi | grep -E "$1" | LC_ALL=C sort | while IFS= read -r f; do if [ -e "$f" ]; then printf '%s\0' "$f"; fi; done
}

need() {
    [ -n "$1" ] && command -v "$1" >/dev/null || {
        echo "$2 was not found: run scripts/deps.sh" >&2
        exit 1
    }
}

# A build by clang in a folder of its own: optimised a little and with line numbers only, which takes
# half the time to build and runs no slower under sanitizers.
configure() {
    local to=$1 linker=
    shift
    ! command -v ld.lld >/dev/null || linker=-fuse-ld=lld
    cmake -S . -B "$to" -G Ninja -DCMAKE_C_COMPILER="$CLANG" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O1 -gline-tables-only" -DCMAKE_EXE_LINKER_FLAGS=$linker \
        -DPETOPT_WERROR=ON "$@" >/dev/null
}

jobs=$(nproc)
case $what in
format)
    need "${CLANG_FORMAT:=clang-format}" clang-format
    list '\.[ch]$' | xargs -0 -r "$CLANG_FORMAT" -i
    ;;
format-check)
    need "${CLANG_FORMAT:=clang-format}" clang-format
    list '\.[ch]$' | xargs -0 -r "$CLANG_FORMAT" --dry-run --Werror
    ;;
tidy)
    need "${CLANG_TIDY:=clang-tidy}" clang-tidy
    list '^(src|onnx|models)/.*\.c$' | xargs -0 -r -n 1 -P "$jobs" "$CLANG_TIDY" -p "$build" --quiet
    ;;
clang-check)
    # The flags are those of the compile commands, less what only gcc knows.
    need "${CLANG:=clang}" clang
    python3 - "$CLANG" "$build" "$jobs" <<'PY'
import concurrent.futures, json, os, shlex, subprocess, sys
clang, build, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])
here = os.getcwd() + os.sep
seen, work = set(), []
for e in json.load(open(os.path.join(build, 'compile_commands.json'))):
    f = e['file']
    if f in seen or not f.startswith(here) or f.startswith(os.path.join(os.path.abspath(build), '')):
        continue
    seen.add(f)
    args = shlex.split(e['command'])
    keep, skip = [], False
    for a in args[1:]:
        if skip:
            skip = False
        elif a in ('-o', '-MF', '-MT', '-MQ'):
            skip = True
        elif a in ('-c', '-MD', '-MMD', f) or a.startswith('-fsanitize'):
            pass
        else:
            keep.append(a)
    work.append([clang, '-fsyntax-only', '-Werror', *keep, f])
with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
    bad = sum(r.returncode != 0 for r in pool.map(subprocess.run, work))
print(f'clang-check: {len(work)} files, {bad} with findings')
sys.exit(bad != 0)
PY
    ;;
sanitize | thread-sanitize)
    # A build of its own, and its unit tests. What ONNX Runtime itself leaves at exit is not ours.
    need "${CLANG:=clang}" clang
    kind=address,undefined
    [ "$what" = sanitize ] || kind=thread
    configure "$build" -DPETOPT_SANITIZE=$kind
    cmake --build "$build" -j "$jobs" -- --quiet
    cd "$build"
    here=$OLDPWD
    export ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1
    export LSAN_OPTIONS=suppressions=$here/tests/lsan.supp:print_suppressions=0
    export UBSAN_OPTIONS=print_stacktrace=1
    export TSAN_OPTIONS=suppressions=$here/tests/tsan.supp
    # Kernels under sanitizers, readings and rules about sources are the same tests in every build;
    # kernels_random_lowered schedules more than `schedules`, which compiles all of it. Emulated
    # GPUs, every order of a program's statements and all random bands take minutes here:
    # SANITIZE_ALL=1 (scripts/soak.sh) runs them as well.
    long='|cuda_run|row_fusion|mugraph_order|sabotage_search'
    [ -z "${SANITIZE_ALL:-}" ] || long=
    ctest -L unit -E "^(codegen_sanitize|schedules|readings|layers.*|rules_hash|schemas.*$long)\$" -j "$jobs" --output-on-failure
    # The program itself, over every published model and some random ones.
    ctest -R '^(backend_models|random_models|random_kernels|roundtrip)$' --output-on-failure
    ;;
fuzz)
    # libFuzzer on every target, a few seconds each from the corpus, always the same way.
    need "${CLANG:=clang}" clang
    configure "$build" -DPETOPT_FUZZ=ON
    mapfile -t targets < <(basename -s .c tests/fuzz/fuzz_*.c)
    cmake --build "$build" -j "$jobs" --target "${targets[@]}"
    [ -z "${FUZZ_BUILD_ONLY:-}" ] || exit 0
    new=$(mktemp -d "$build/new.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    ran=0
    running=()
    for target in "${targets[@]}"; do
        name=${target#fuzz_}
        mkdir -p "$new/$name"
        echo "fuzz: $name"
        "$build/tests/fuzz/$target" -seed=1 -runs="${FUZZ_RUNS:-10000}" -max_total_time="${FUZZ_SECONDS:-12}" -timeout=10 \
            -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
            -artifact_prefix="$build/fuzz-" "$new/$name" "tests/fuzz/corpus/$name" &
        running+=($!)
        ran=$((ran + 1))
    done
    for id in "${running[@]}"; do wait "$id"; done
    echo "fuzz: $ran targets"
    [ "$ran" -gt 0 ]
    ;;
corpus | edges)
    # The kept inputs once: `edges` writes down what each target's reach, `corpus` fails below 98 %.
    need "${CLANG:=clang}" clang
    FUZZ_BUILD_ONLY=1 bash scripts/check.sh fuzz "$build"
    python3 tests/fuzz/edges.py "$what" "$build"
    [ "$what" = edges ] || python3 tests/fuzz/edges.py sabotage "$build"
    ;;
coverage)
    # Branches of the loader that the units and the kept corpus take, of those that are not excepted.
    need "${CLANG:=clang}" clang
    need "${LLVM_COV:=llvm-cov}" llvm-cov
    configure "$build" -DCMAKE_C_FLAGS="-fprofile-instr-generate -fcoverage-mapping -DNDEBUG"
    mapfile -t programs < <(basename -s .c tests/unit/test_import_*.c tests/fuzz/fuzz_import.c)
    cmake --build "$build" -j "$jobs" --target "${programs[@]/#/cover_}"
    rm -rf "$build/profiles"
    objects=()
    for program in "${programs[@]}"; do
        at=$build/tests/fuzz/cover_$program
        words=()
        [ "$program" != fuzz_import ] || words=(tests/fuzz/corpus/import)
        LLVM_PROFILE_FILE="$build/profiles/$program-%p.profraw" "$at" "${words[@]}" >/dev/null
        objects+=("$([ ${#objects[@]} -eq 0 ] || printf %s -object=)$at") # the first by its bare name
    done
    llvm-profdata merge -o "$build/profiles/all" "$build"/profiles/*.profraw
    "$LLVM_COV" export -format=lcov -instr-profile "$build/profiles/all" "${objects[@]}" |
        python3 tests/fuzz/branches.py src/import tests/fuzz/uncovered.txt
    ;;
*)
    echo "unknown check '$what'" >&2
    exit 2
    ;;
esac
