# Shared by quickstart.sh, tests/run.sh and bundle.sh; sourced, never run.
# Says what it does on standard error, and ends with one clear message when something is missing.

REPRISE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '==> %s\n' "$*" >&2; }

fail() {
  printf 'reprise: %s\n' "$*" >&2
  exit 1
}

wanted_packages() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$REPRISE_ROOT/deploy/packages.txt"; }

missing_packages() {
  local package
  for package in $(wanted_packages); do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || printf '%s\n' "$package"
  done
}

# Installs what deploy/packages.txt lists and this machine lacks. Needs root or password-less sudo for that step only.
ensure_packages() {
  command -v dpkg-query >/dev/null || fail "this is not a Debian system (no dpkg-query); install the equivalents of deploy/packages.txt, then set REPRISE_SKIP_PACKAGES=1"
  local missing become=""
  missing=$(missing_packages | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      become="sudo"
    else
      fail "packages are missing and installing them needs root. Run this, then start again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing"
    fi
  fi
  say "installing packages: $missing"
  local log
  log=$(mktemp)
  if ! { $become apt-get update && $become env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    if grep -q 'Unable to locate package.*-22' "$log"; then
      fail "LLVM 22 is not in this machine's package sources; Debian 12 has it in bookworm-security (deb http://deb.debian.org/debian-security bookworm-security main)"
    fi
    fail "apt-get could not install them; the whole log is $log"
  fi
  rm -f "$log"
}

ensure_cuda() {
  local home=${CUDA_HOME:-/usr/local/cuda}
  [ -e "$home/include/cuda.h" ] || fail "no CUDA toolkit at $home (no include/cuda.h). Install CUDA 13.0 (no GPU or driver is needed), or set CUDA_HOME to where it is"
  local version
  version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$home/include/cuda.h")
  [ "${version:-0}" -ge 13000 ] || fail "got CUDA ${version:-of unknown version} at $home, expected 13.0 or newer (CUDA_VERSION 13000); set CUDA_HOME to another toolkit"
  export CUDA_HOME=$home
}

# ensure_disk DIRECTORY GIB
ensure_disk() {
  local free
  free=$(df -Pk "$1" | awk 'NR==2 {print int($4 / 1048576)}')
  [ "$free" -ge "$2" ] || fail "got $free GiB free at $1, expected at least $2 for the build; free some space"
}

# build PRESET TARGET...: configures once and builds; prints the end of the log when that fails.
build() {
  local preset=$1 log
  shift
  log=$REPRISE_ROOT/build/$preset.log
  mkdir -p "$REPRISE_ROOT/build"
  if [ ! -e "$REPRISE_ROOT/build/$preset/build.ninja" ]; then
    say "configuring the $preset build"
    (cd "$REPRISE_ROOT" && cmake --preset "$preset") >"$log" 2>&1 || {
      sed -n '/CMake Error/,$p' "$log" | head -n 15 >&2
      fail "configuring failed; the whole log is $log"
    }
  fi
  say "building ($preset: $*); log in $log"
  if ! (cd "$REPRISE_ROOT" && cmake --build "build/$preset" --target "$@") >>"$log" 2>&1; then
    grep -nE 'error:|FAILED|No space left|undefined' "$log" | tail -n 15 >&2
    grep -q 'No space left on device' "$log" && fail "the disk is full; free some space and start again"
    fail "the build failed; the whole log is $log"
  fi
}
