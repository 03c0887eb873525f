#!/usr/bin/env bash
# Packs a self-contained, relocatable archive for a host that has CUDA but none of our packages: the reprise binary, the
# preload libraries, the shared libraries they need (not glibc's), Clang's own headers, and the test applications.
# Usage: bash deploy/bundle.sh [OUTPUT.tar.xz]     (default: build/reprise-bundle.tar.xz)
# There: tar xf reprise-bundle.tar.xz && reprise-bundle/bin/reprise doctor
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case "${1:-}" in
  -h | --help)
    sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac
output=$(realpath -m "${1:-$REPRISE_ROOT/build/reprise-bundle.tar.xz}")
limit_mib=64

ensure_cuda
build release reprise_all load_cubins cuda_device_benchmark replay_benchmark
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
bundle=$stage/reprise-bundle
mkdir -p "$bundle/bin" "$bundle/lib/clang/22" "$bundle/share"
cp "$REPRISE_ROOT/build/release/bin/reprise" "$bundle/bin/"
cp "$REPRISE_ROOT"/build/release/tests/bin/{load_cubins,cuda_device_benchmark,replay_benchmark} "$bundle/bin/"
cp "$REPRISE_ROOT"/build/release/lib/libreprise_{cudart,cuda}.so "$bundle/lib/"
strip "$bundle"/bin/*

# glibc and its parts come from the host: a second libc does not work.
ldd "$bundle/bin/reprise" | awk '$3 ~ /^\// {print $3}' |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' | while read -r library; do
  cp -L "$library" "$bundle/lib/"
done
cp -r /usr/lib/llvm-22/lib/clang/22/include "$bundle/lib/clang/22/"
cp -r "$REPRISE_ROOT/tests/apps" "$bundle/share/apps"
cp "$REPRISE_ROOT/LICENSE" "$REPRISE_ROOT/README.md" "$bundle/"

mkdir -p "$(dirname "$output")"
tar -C "$stage" -c reprise-bundle | xz -T2 -6 >"$output"
size_mib=$(($(stat -c %s "$output") / 1048576))
[ "$size_mib" -le "$limit_mib" ] || fail "the bundle is $size_mib MiB, expected at most $limit_mib"
say "wrote $output ($size_mib MiB)"
