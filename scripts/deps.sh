#!/usr/bin/env bash
# Installs and unpacks what petopt needs to build and to test, and only what is missing.
#
#   scripts/deps.sh            for building, testing and the demo
#   scripts/deps.sh --bench    and what bench/ needs: the Python tools that petopt is compared with,
#                              models of other packages (some 500 MB)
#   scripts/deps.sh --exports  and what bench/exports.py exports models with: PyTorch (some 6 GB)
#   scripts/deps.sh --soak     and the oldest ONNX Runtime that petopt's models must run on
#
# Debian packages are installed with apt-get (as root or through sudo). All else is unpacked into
# .deps/ beside the sources and nothing of it is installed. Package sources are those that this
# machine's apt and pip are set up with. A second run finds its stamps and returns at once.
set -euo pipefail

# Pins. A changed pin is fetched again, since each stamp carries it.
onnx_version=1.22.0 # the last release with the backend tests' data
ort_version=1.31.1
numpy_version=2.4.6
old_ort_version=1.17.3 # of scripts/soak.sh
old_numpy_version=1.26.4
rapidocr_version=1.4.4
onnxsim_version=0.8.1
onnxslim_version=0.1.98
openvino_version=2026.4.1
torch_version=2.15.0 # of bench/exports.py
torchvision_version=0.29.2
transformers_version=5.24.0
timm_version=1.0.31
onnxscript_version=0.7.2
nvrtc_version=13.0.88
ort_header_suite=trixie
# The header of Debian's libonnxruntime-dev in that suite; looked at only where apt cannot check
# the suite's signature with the keys of this machine.
ort_header_sha256=7783e9664bdb0b1b36145b5c8587dd1bc9a399aa000edf2e3dd03003cafc6882
least_backend_models=1914

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

export ORT_DISABLE_TELEMETRY=1 # its own builds call home unless told not to

say() { printf 'deps: %s\n' "$*"; }
die() {
    printf 'deps: error: %s\n' "$*" >&2
    exit 1
}

bench=no exports=no soak=no
for arg in "$@"; do
    case $arg in
    --bench) bench=yes ;;
    --exports) exports=yes ;;
    --soak) soak=yes ;;
    -h | --help)
        sed -n '2,12s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) die "unknown option '$arg' (known: --bench, --exports, --soak)" ;;
    esac
done

# ---- Debian packages ---------------------------------------------------------------------------

have_cmd() { command -v "$1" >/dev/null 2>&1; }
have_header() { [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]; }
have_pkg() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = 'ii ' ]; }
have_fuzzer() { have_cmd clang && ls "$(clang -print-resource-dir)"/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1; }
have_venv() { python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || /usr/bin/python3 -c 'import venv, ensurepip' >/dev/null 2>&1; }
have_cc() { have_cmd gcc && have_cmd g++ && have_header stdlib.h; }

# package | test that tells it is not needed because the thing is there already
packages='
build-essential|have_cc
clang|have_cmd clang
clang-format|have_cmd clang-format
clang-tidy|have_cmd clang-tidy
cmake|have_cmd cmake
ninja-build|have_cmd ninja
pkg-config|have_cmd pkg-config
libprotobuf-c-dev|have_header protobuf-c/protobuf-c.h
protobuf-c-compiler|have_cmd protoc-c
libz3-dev|have_header z3.h
libsqlite3-dev|have_header sqlite3.h
libcmocka-dev|have_header cmocka.h
libxxhash-dev|have_header xxhash.h
libjansson-dev|have_header jansson.h
libssl-dev|have_header openssl/evp.h
python3-venv|have_venv
'

missing_packages() {
    local line
    while IFS= read -r line; do
        [ -n "$line" ] || continue
        have_pkg "${line%%|*}" || ${line#*|} || printf '%s\n' "${line%%|*}"
    done <<<"$packages"
}

apt_updated=no
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have_cmd sudo; then
        sudo "$@"
    else
        return 1
    fi
}

apt_install() {
    have_cmd apt-get || die "no apt-get on this machine; install by hand: $*"
    if [ "$(id -u)" != 0 ] && ! have_cmd sudo; then
        die "not root and no sudo; as root, run: apt-get install $*"
    fi
    if [ "$apt_updated" = no ]; then
        say "apt-get update"
        as_root apt-get -o DPkg::Lock::Timeout=300 -qq update </dev/null ||
            say "warning: apt-get update failed in part; going on with the lists at hand"
        apt_updated=yes
    fi
    say "apt-get install $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        -qq -y install --no-install-recommends "$@" </dev/null >/dev/null ||
        die "apt-get could not install: $*"
}

install_packages() {
    local list
    mapfile -t list < <(missing_packages)
    if [ ${#list[@]} -gt 0 ]; then
        apt_install "${list[@]}"
    fi
    if ! have_fuzzer; then
        local major
        major=$(clang -dumpversion | cut -d. -f1)
        apt_install "libclang-rt-$major-dev"
    fi
    mapfile -t list < <(missing_packages)
    [ ${#list[@]} -eq 0 ] || die "still missing after the installation: ${list[*]}"
}

install_packages

# ---- .deps ------------------------------------------------------------------------------------

# Linked work trees of one repository share the .deps of the main one.
if [ ! -e .deps ] && have_cmd git; then
    common=$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null || true)
    main=${common%/.git}
    if [ -n "$common" ] && [ "$main" != "$common" ] && [ "$main" != "$root" ]; then
        mkdir -p "$main/.deps"
        ln -s "$main/.deps" .deps
        say ".deps is shared with $main"
    fi
fi
mkdir -p .deps/stamps
deps=$(cd .deps && pwd -P)
exec 9>"$deps/.lock"
if have_cmd flock; then
    flock -w 1800 9 || die "another scripts/deps.sh holds $deps/.lock"
fi

done_already() { [ -e "$deps/stamps/$1" ]; }
mark() { : >"$deps/stamps/$1"; }

tmp=$(mktemp -d "$deps/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

py=$deps/venv/bin/python3
pip() { "$py" -m pip --disable-pip-version-check -q "$@" </dev/null; }

make_venv() {
    local stamp=venv-onnx$onnx_version-ort$ort_version-numpy$numpy_version base
    done_already "$stamp" && return
    say "Python environment with onnx $onnx_version, onnxruntime $ort_version, numpy $numpy_version"
    base=python3
    python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || base=/usr/bin/python3
    rm -rf "$deps/venv"
    "$base" -m venv "$deps/venv"
    pip install "onnx==$onnx_version" "onnxruntime==$ort_version" "numpy==$numpy_version"
    "$py" -c "import onnx, onnxruntime as o; assert onnx.__version__ == '$onnx_version' and o.__version__ == '$ort_version'" ||
        die "the Python environment in .deps/venv does not import onnx and onnxruntime"
    mark "$stamp"
}

site_packages() { "$py" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# onnx-ml.proto and the backend tests' data.
unpack_onnx() {
    local stamp=onnx-$onnx_version from count
    done_already "$stamp" && return
    say "onnx-ml.proto and the backend tests of onnx $onnx_version"
    from=$(site_packages)/onnx
    rm -rf "$deps/onnx"
    mkdir -p "$deps/onnx"
    cp "$from/onnx-ml.proto" "$deps/onnx/"
    cp -R "$from/backend/test/data" "$deps/onnx/test-data"
    grep -q 'message ModelProto' "$deps/onnx/onnx-ml.proto" || die "onnx-ml.proto is not what it should be"
    count=$(find "$deps/onnx/test-data" -name '*.onnx' | wc -l)
    [ "$count" -ge "$least_backend_models" ] ||
        die "the onnx wheel holds $count backend test models (at least $least_backend_models expected)"
    mark "$stamp"
}

# The addresses that this machine's apt takes the distribution's own packages from.
apt_mirrors() {
    {
        apt-get indextargets --format '$(CREATED_BY) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
            awk '$1 == "Packages" && $2 == "main" { print $3 }'
        cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
            sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .* main.*/\2/p'
        sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | tr ' ' '\n'
    } | grep -v '^cdrom:' | sed 's,/*$,/,' | awk 'NF && !seen[$0]++'
}

# Fetches package $1 of suite $2 into the folder $3, through a private apt root: the machine's own
# lists and sources stay as they are. $4 stands in the brackets of the source line too. What else the
# machine's settings fetch from a suite (apt-file: Contents) is left alone: it may be out of step.
apt_fetch() {
    local package=$1 suite=$2 to=$3 trust=$4 mirror r
    while IFS= read -r mirror; do
        r=$tmp/apt
        rm -rf "$r"
        mkdir -p "$r/lists/partial" "$r/archives/partial" "$r/parts" "$to"
        printf 'deb [target=Packages %s] %s %s main\n' "$trust" "$mirror" "$suite" >"$r/sources.list"
        local opts=(-o "Dir::Etc::SourceList=$r/sources.list" -o "Dir::Etc::SourceParts=$r/parts"
            -o "Dir::State::Lists=$r/lists" -o "Dir::Cache=$r" -o "Dir::Cache::Archives=$r/archives"
            -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=0 -o Acquire::Languages=none)
        if apt-get -qq "${opts[@]}" update </dev/null >"$r/log" 2>&1 && ! grep -q '^[WE]:' "$r/log" &&
            (cd "$to" && apt-get -qq "${opts[@]}" download "$package" </dev/null >>"$r/log" 2>&1); then
            return 0
        fi
    done < <(apt_mirrors)
    return 1
}

check_header() {
    grep -q 'define ORT_API_VERSION' "$1" 2>/dev/null || die "$1 is not ONNX Runtime's C header"
}

# The runtime's library out of its wheel and its C header out of Debian's package; a runtime that
# the system has is preferred.
unpack_ort() {
    local stamp=ort-$ort_version-$ort_header_suite lib header
    if [ -e /usr/include/onnxruntime/onnxruntime_c_api.h ] && ldconfig -p 2>/dev/null | grep -q 'libonnxruntime\.so'; then
        done_already system-ort || say "ONNX Runtime: the system's own is used"
        mark system-ort
        return
    fi
    done_already "$stamp" && return
    say "ONNX Runtime $ort_version and its C header"
    rm -rf "$deps/onnxruntime"
    mkdir -p "$deps/onnxruntime/lib" "$deps/onnxruntime/include"
    lib=libonnxruntime.so.$ort_version
    cp "$(site_packages)/onnxruntime/capi/$lib" "$deps/onnxruntime/lib/"
    ln -sf "$lib" "$deps/onnxruntime/lib/libonnxruntime.so.1"
    ln -sf libonnxruntime.so.1 "$deps/onnxruntime/lib/libonnxruntime.so"
    "$py" -c "import ctypes; ctypes.CDLL('$deps/onnxruntime/lib/libonnxruntime.so.1').OrtGetApiBase" ||
        die "libonnxruntime.so.1 does not load"
    local signed=yes
    if ! apt_fetch libonnxruntime-dev "$ort_header_suite" "$tmp/deb" ""; then
        signed=no
        apt_fetch libonnxruntime-dev "$ort_header_suite" "$tmp/deb" "trusted=yes" || {
            cat "$tmp/apt/log" >&2 || true
            die "libonnxruntime-dev of Debian $ort_header_suite could not be fetched from: $(apt_mirrors | tr '\n' ' ')"
        }
    fi
    dpkg-deb -x "$tmp"/deb/libonnxruntime-dev_*.deb "$tmp/deb/x"
    header=$(find "$tmp/deb/x" -name onnxruntime_c_api.h | head -n 1)
    [ -n "$header" ] || die "libonnxruntime-dev holds no onnxruntime_c_api.h"
    if [ "$signed" = no ]; then
        [ "$(sha256sum "$header" | cut -d' ' -f1)" = "$ort_header_sha256" ] ||
            die "onnxruntime_c_api.h came unsigned and is not the known one (sha256)"
    fi
    cp "$(dirname "$header")"/*.h "$deps/onnxruntime/include/"
    check_header "$deps/onnxruntime/include/onnxruntime_c_api.h"
    mark "$stamp"
}

# unpack_wheel DIR PATTERN PACKAGE==VERSION: the files of a wheel whose names match, without the
# folders that they are in.
unpack_wheel() {
    rm -rf "$1" "$tmp/wheel"
    mkdir -p "$1"
    pip download --no-deps -d "$tmp/wheel" "$3"
    "$py" - "$1" "$2" "$tmp"/wheel/*.whl <<'PY'
import os, re, sys, zipfile
out, pattern, wheel = sys.argv[1:]
with zipfile.ZipFile(wheel) as z:
    for name in z.namelist():
        if re.search(pattern, os.path.basename(name)):
            with open(os.path.join(out, os.path.basename(name)), 'wb') as f:
                f.write(z.read(name))
PY
}

# The compiler for generated CUDA kernels, which needs no GPU: out of its wheel, unless the system has
# the CUDA Toolkit's.
unpack_nvrtc() {
    local stamp=nvrtc-$nvrtc_version
    if ldconfig -p 2>/dev/null | grep -q 'libnvrtc\.so\.1[2-9]'; then
        done_already system-nvrtc || say "NVRTC: the system's own is used"
        mark system-nvrtc
        return
    fi
    done_already "$stamp" && return
    say "NVRTC $nvrtc_version"
    unpack_wheel "$deps/nvrtc/lib" '^libnvrtc(?!.*\.alt\.)' "nvidia-cuda-nvrtc==$nvrtc_version"
    "$py" -c "import ctypes; ctypes.CDLL('$deps/nvrtc/lib/libnvrtc.so.13').nvrtcVersion" ||
        die "libnvrtc.so.13 does not load"
    mark "$stamp"
}

# The OCR models that the demo and the benches run on.
unpack_models() {
    local stamp=models-$rapidocr_version
    done_already "$stamp" && return
    say "OCR models of rapidocr-onnxruntime $rapidocr_version"
    unpack_wheel "$deps/models" '\.onnx$' "rapidocr-onnxruntime==$rapidocr_version"
    [ "$(find "$deps/models" -name '*.onnx' | wc -l)" -ge 3 ] || die "the OCR wheel holds fewer than 3 models"
    mark "$stamp"
}

# What bench/ measures petopt against, in an environment of its own.
make_bench() {
    local tools=("onnxsim==$onnxsim_version" "onnxslim==$onnxslim_version" "openvino==$openvino_version")
    local stamp=bench-$onnxsim_version-$onnxslim_version-$openvino_version bench=$deps/bench/bin/python3
    done_already "$stamp" && return
    say "tools for bench/: ${tools[*]}"
    rm -rf "$deps/bench"
    "$(readlink -f "$py")" -m venv "$deps/bench"
    "$bench" -m pip --disable-pip-version-check -q install "onnx==$onnx_version" \
        "onnxruntime==$ort_version" "numpy==$numpy_version" "${tools[@]}" </dev/null
    "$bench" -c 'import onnxruntime, onnxsim, onnxslim, openvino' || die "the tools for bench/ do not import"
    mark "$stamp"
}

# What bench/exports.py makes models with.
make_exports() {
    local tools=("torch==$torch_version" "torchvision==$torchvision_version" "transformers==$transformers_version" "timm==$timm_version" "onnxscript==$onnxscript_version")
    local stamp=exports-$torch_version-$transformers_version-$timm_version exports=$deps/exports/bin/python3
    done_already "$stamp" && return
    say "tools for bench/exports.py: ${tools[*]}"
    rm -rf "$deps/exports"
    "$(readlink -f "$py")" -m venv "$deps/exports"
    "$exports" -m pip --disable-pip-version-check -q install "onnx==$onnx_version" "${tools[@]}" </dev/null
    "$exports" -c 'import onnxscript, timm, torch, transformers' || die "the tools for bench/exports.py do not import"
    mark "$stamp"
}

# The oldest runtime that scripts/soak.sh runs models on.
make_old() {
    local stamp=old-$old_ort_version-$old_numpy_version-$onnx_version old=$deps/venv-old/bin/python3
    done_already "$stamp" && return
    say "onnxruntime $old_ort_version for scripts/soak.sh"
    rm -rf "$deps/venv-old"
    "$(readlink -f "$py")" -m venv "$deps/venv-old"
    "$old" -m pip --disable-pip-version-check -q install "onnx==$onnx_version" \
        "onnxruntime==$old_ort_version" "numpy==$old_numpy_version" </dev/null
    "$old" -c 'import onnx, onnxruntime' || die "onnxruntime $old_ort_version does not import"
    mark "$stamp"
}

# Models that others made, for bench/fleet.py: of every package in its table the .onnx files alone.
# One that this machine's index does not have is told, and bench/fleet.py goes on without it.
unpack_fleet() {
    local spec stamp
    while IFS= read -r spec; do
        stamp=fleet-$spec
        done_already "$stamp" && continue
        say "models of $spec"
        rm -rf "$tmp/fleet" "$deps/fleet/$spec"
        if ! pip download --no-deps -d "$tmp/fleet" "$spec"; then
            say "warning: $spec could not be fetched"
            continue
        fi
        mkdir -p "$deps/fleet/$spec"
        "$py" - "$deps/fleet/$spec" "$tmp"/fleet/* <<'PY'
import os, sys, tarfile, zipfile
out, archives = sys.argv[1], sys.argv[2:]
for archive in archives:
    if zipfile.is_zipfile(archive):
        z = zipfile.ZipFile(archive)
        files = [(n, lambda n=n: z.read(n)) for n in z.namelist()]
    else:
        t = tarfile.open(archive)
        files = [(m.name, lambda m=m: t.extractfile(m).read()) for m in t.getmembers() if m.isfile()]
    for name, read in files:
        path = os.path.normpath(os.path.join(out, name))
        if name.endswith(('.onnx', '.onnx.data')) and path.startswith(out + os.sep):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'wb') as f:
                f.write(read())
PY
        mark "$stamp"
    done < <(sed -n 's/^\([^#|]*==[^ |]*\) *|.*/\1/p' bench/fleet.txt | sort -u)
}

make_venv
unpack_onnx
unpack_ort
unpack_nvrtc
unpack_models
[ "$bench" = no ] || make_bench
[ "$bench" = no ] || unpack_fleet
[ "$exports" = no ] || make_exports
[ "$soak" = no ] || make_old
say "ready"
