#!/usr/bin/env bash
# Sets up a fresh machine and runs the main job: builds Reprise, then records and optimizes an example application.
# No GPU is needed. Usage: bash deploy/quickstart.sh [arguments of `reprise demo`, e.g. --budget 20s]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case "${1:-}" in
  -h | --help)
    sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac

say "Reprise quickstart: packages, build, demo (the first build takes some minutes)"
ensure_disk "$REPRISE_ROOT" 4
ensure_cuda
[ -n "${REPRISE_SKIP_PACKAGES:-}" ] || ensure_packages
build release reprise_all
say "running: reprise demo $*"
exec "$REPRISE_ROOT/build/release/bin/reprise" demo "$@"
