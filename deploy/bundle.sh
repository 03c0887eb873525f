#!/usr/bin/env bash
# Packs a self-contained, relocatable archive for any x86-64 Linux with glibc 2.28 or newer that has a CUDA toolkit but
# none of our packages: the programs, the preload libraries, the shared libraries they need, Clang's own headers, and the
# test applications. Where the host's glibc is older than the build machine's, the programs run on one that the bundle
# brings; REPRISE_GLIBC=host or REPRISE_GLIBC=bundled takes that one. Applications always run on the host's.
# Usage: bash deploy/bundle.sh [OUTPUT.tar.xz]          (default: build/reprise-bundle.tar.xz)
#        bash deploy/bundle.sh --directory DIRECTORY    (no archive; replaces DIRECTORY)
# There: tar xf reprise-bundle.tar.xz && reprise-bundle/bin/reprise doctor
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

output=$REPRISE_ROOT/build/reprise-bundle.tar.xz
directory=""
case "${1:-}" in
  -h | --help)
    sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  --directory) directory=$(realpath -m "${2:?the directory is missing}") ;;
  ?*) output=$(realpath -m "$1") ;;
esac
limit_mib=64
build_dir=$REPRISE_ROOT/build/release
programs=("$build_dir"/bin/reprise "$build_dir"/tests/bin/{load_cubins,cuda_device_benchmark,null_campaigns,replay_benchmark,server_benchmark})
glibc_parts='ld-linux-x86-64|libc|libm|libmvec|libdl|librt|libpthread|libutil|libresolv|libanl|libnss_files|libnss_dns'

# add_glibc BUNDLE: the build machine's glibc, for hosts with an older one.
add_glibc() {
  local libc folder library
  libc=$(ldd "${programs[0]}" | awk '$1 == "libc.so.6" {print $3}')
  folder=$(dirname "$(realpath "$libc")")
  mkdir "$1/lib/glibc"
  for library in "$folder"/*.so.*; do
    [[ ${library##*/} =~ ^($glibc_parts)\.so\.[0-9]$ ]] && cp -L "$library" "$1/lib/glibc/"
  done
  chmod +x "$1/lib/glibc/ld-linux-x86-64.so.2"
  cp /usr/share/doc/libc6/copyright "$1/lib/glibc/COPYRIGHT" 2>/dev/null || true
}

# needed_minor FILE...: N of the newest glibc 2.N that the files need.
needed_minor() {
  nm -D --undefined-only "$@" | sed -n 's/.*@GLIBC_2\.\([0-9]*\).*/\1/p' | sort -n | tail -n 1
}

# stage BUNDLE: fills the directory.
stage() {
  local bundle=$1 program minor
  mkdir -p "$bundle"/{bin,libexec,share} "$bundle/lib/clang/22"
  cp "${programs[@]}" "$bundle/libexec/"
  strip "$bundle"/libexec/*
  cp "$build_dir"/lib/libreprise_{cudart,cuda}.so "$bundle/lib/"
  ldd "${programs[@]}" | awk '$3 ~ /^\// {print $3}' | sort -u |
    grep -vE "/($glibc_parts)\.so" | while read -r library; do
    cp -L "$library" "$bundle/lib/"
  done
  add_glibc "$bundle"
  minor=$(needed_minor "$bundle"/libexec/* "$bundle"/lib/*.so*)
  for program in "${programs[@]##*/}"; do
    sed "s/@MINOR@/$minor/g" "$REPRISE_ROOT/deploy/launcher.sh" >"$bundle/bin/$program"
    chmod +x "$bundle/bin/$program"
  done
  cp -r /usr/lib/llvm-22/lib/clang/22/include "$bundle/lib/clang/22/"
  cp -r "$REPRISE_ROOT/tests/apps" "$bundle/share/apps"
  cp "$REPRISE_ROOT/LICENSE" "$REPRISE_ROOT/README.md" "$bundle/"
}

ensure_cuda
build release reprise_all load_cubins cuda_device_benchmark null_campaigns replay_benchmark server_benchmark
if [ -n "$directory" ]; then
  rm -rf "$directory"
  stage "$directory"
  exit
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
stage "$scratch/reprise-bundle"
mkdir -p "$(dirname "$output")"
tar -C "$scratch" -c reprise-bundle | xz -T2 -6 >"$output"
size_mib=$(($(stat -c %s "$output") / 1048576))
[ "$size_mib" -le "$limit_mib" ] || fail "the bundle is $size_mib MiB, expected at most $limit_mib"
say "wrote $output ($size_mib MiB)"
