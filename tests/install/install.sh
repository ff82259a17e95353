#!/usr/bin/env bash
# install.sh BUILD CC: installs into a scratch folder, then builds and runs use.c against what is
# there, by pkg-config alone: with the shared library, with the static one, and as C++.
set -euo pipefail
build=$1 cc=$2
here=$(cd "$(dirname "$0")" && pwd)
to=$(mktemp -d "$build/install.XXXXXX")
trap 'rm -rf "$to"' EXIT
cmake --install "$build" --prefix "$to/root" >/dev/null
pc=$(find "$to/root" -name petopt.pc)
# The file carries the prefix of the configuration; --define-prefix takes that of its place.
flags() { PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --define-prefix "$@" petopt; }
lib=$(dirname "$(dirname "$pc")")
ls "$lib"/libpetopt.a "$lib"/libpetopt.so >/dev/null
shopt -s nullglob
binaries=("$to"/root/bin/*)

"$cc" -std=c17 -Wall -Wextra -Werror -pedantic $(flags --cflags) "$here/use.c" -o "$to/shared" $(flags --libs)
LD_LIBRARY_PATH=$lib "$to/shared" "$to/shared.onnx" >"$to/shared.out"
readelf -d "$to/shared" | grep -q 'NEEDED.*libpetopt\.so'

mkdir "$to/only_static"
cp "$lib/libpetopt.a" "$to/only_static/"
"$cc" -std=c17 $(flags --cflags) "$here/use.c" -o "$to/static" -L"$to/only_static" \
    $(flags --static --libs | sed "s,-L$lib,,")
"$to/static" "$to/static.onnx" >"$to/static.out"
cmp "$to/shared.out" "$to/static.out"
cmp "$to/shared.onnx" "$to/static.onnx"

# The header is anyone's: no compiler finds fault with it, whichever built the library.
for other in gcc clang; do
    if command -v "$other" >/dev/null; then
        "$other" -std=c17 -Wall -Wextra -Werror -pedantic $(flags --cflags) -fsyntax-only "$here/use.c"
    fi
done
if command -v c++ >/dev/null; then
    c++ -x c++ -Wall -Wextra -Werror $(flags --cflags) -fsyntax-only "$here/use.c"
fi
for b in "${binaries[@]}"; do
    if readelf -d "$b" | grep -E 'RPATH|RUNPATH'; then
        echo "$b carries a path of the build" >&2
        exit 1
    fi
done
cat "$to/shared.out"
