#!/usr/bin/env bash
# The bundle as another machine meets it, by this machine's glibc and by the bundled one.
# Usage: bash bundle_test.sh                 stages a bundle and runs it here, both ways
#        bash bundle_test.sh --root FOLDER   runs it, and applications, in an older system's root folder, as root:
#                                            debootstrap --variant=minbase --include=g++ bullseye FOLDER
#        bash bundle_test.sh --check BUNDLE  the checks themselves, on a staged bundle; what the others run
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

die() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# What an application under `reprise record` gets must be its own: the environment, and the libraries of the host.
check_application_is_left_alone() {
  local seen
  seen=$("$1/bin/reprise" record --store "$scratch/none" -- /bin/sh -c 'env; cat /proc/self/maps' 2>/dev/null || true)
  grep -q '^LD_PRELOAD=.*libreprise_cud' <<<"$seen" || die "the preload library was not named to the application"
  grep -q '/lib/libreprise_cud' <<<"$seen" || die "the preload library did not load into the application"
  ! grep -q '^LD_LIBRARY_PATH=' <<<"$seen" || die "LD_LIBRARY_PATH leaked into the application"
  ! grep -q 'lib/glibc/' <<<"$seen" || die "the application runs on the bundled glibc"
}

# check BUNDLE: with REPRISE_GLIBC as it is.
check() {
  local bundle=$1 library
  "$bundle/bin/reprise" --version >/dev/null || die "bin/reprise does not start"
  ln -s "$bundle/bin/reprise" "$scratch/link"
  [ "$("$scratch/link" --version)" = "$("$bundle/bin/reprise" --version)" ] || die "it does not start by a link"
  (cd "$bundle/bin" && PATH=.:$PATH reprise --version >/dev/null) || die "it does not start by a relative PATH"
  for library in "$bundle"/lib/libreprise_*.so; do
    [[ $(LD_PRELOAD=$library LD_BIND_NOW=1 /bin/sh -c 'cat /proc/self/maps' 2>/dev/null) == */"${library##*/}"* ]] ||
      die "$library does not load into a program of this system"
  done
  "$bundle/bin/reprise" doctor --store "$scratch/doctor" >"$scratch/doctor.txt" ||
    die "doctor: $(cat "$scratch/doctor.txt")"
  check_application_is_left_alone "$bundle"
  # Compiles by `reprise cc`, records, optimizes, replays and runs the application with the winner.
  (cd "$scratch" && "$bundle/bin/reprise" demo --budget 5s --device cpu --json >demo.json 2>demo.log) ||
    [ $? -eq 3 ] || die "demo: $(cat "$scratch/demo.log")"
  grep -q '"baseline_matches_epilogue": *true' "$scratch/demo.json" || die "demo: $(cat "$scratch/demo.json")"
}

check_launcher() {
  local bundle=$1 code=0
  REPRISE_GLIBC=nonsense "$bundle/bin/reprise" --version 2>/dev/null || code=$?
  [ $code -eq 2 ] || die "got exit $code for a wrong REPRISE_GLIBC, expected 2"
  ! grep -q @MINOR@ "$bundle/bin/reprise" || die "the launcher was not filled in"
}

# in_root FOLDER BUNDLE: mounts stay in a name space of their own.
in_root() {
  # shellcheck disable=SC2016
  unshare -m bash -euc '
    root=$1 bundle=$2 script=$3 cuda=${CUDA_HOME:-/usr/local/cuda}
    mkdir -p "$root"/{bundle-test,usr/local/cuda,proc,dev,sys}
    mount -t tmpfs none "$root/bundle-test"
    mkdir "$root/bundle-test/bundle"
    mount --bind "$bundle" "$root/bundle-test/bundle"
    mount --bind "$(realpath "$cuda")" "$root/usr/local/cuda"
    mount --rbind /proc "$root/proc"
    mount --rbind /dev "$root/dev"
    cp "$script" "$root/bundle-test/"
    env -i HOME=/bundle-test PATH=/usr/local/cuda/bin:/usr/sbin:/usr/bin:/sbin:/bin ${REPRISE_GLIBC+REPRISE_GLIBC=$REPRISE_GLIBC} \
      chroot "$root" bash "/bundle-test/${script##*/}" --check /bundle-test/bundle
  ' - "$1" "$2" "$(realpath "${BASH_SOURCE[0]}")"
}

case ${1:-} in
  --check) check "$2" ;;
  "" | --root)
    bundle=$scratch/bundle
    bash "$(dirname "${BASH_SOURCE[0]}")/../../deploy/bundle.sh" --directory "$bundle"
    if [ $# -gt 0 ]; then
      in_root "$(realpath "$2")" "$bundle"
    else
      check_launcher "$bundle"
      for glibc in host bundled; do
        REPRISE_GLIBC=$glibc bash "${BASH_SOURCE[0]}" --check "$bundle" || die "with the $glibc glibc"
      done
    fi
    ;;
  *) die "got argument '$1', expected --root FOLDER, --check BUNDLE or nothing" ;;
esac
printf 'the bundle works\n'
