#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests that need no GPU: style, header self-containment, the
# release tests, then the named tests under AddressSanitizer and ThreadSanitizer. Ends with one count line.
# Usage: bash tests/run.sh [--quick]   (--quick: release tests only)
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../deploy/lib.sh"

quick=""
for argument in "$@"; do
  case "$argument" in
    --quick) quick=1 ;;
    -h | --help)
      sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "got argument '$argument', expected --quick or nothing" ;;
  esac
done

passed=0
failed=0

# count NAME COMMAND...: one check, counted as one test.
count() {
  local name=$1 log=$REPRISE_ROOT/build/check-$1.log
  shift
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "$name"
    grep -E '(warning|error):' "$log" | sort -u | head -n 20
    tail -n 20 "$log"
  fi
}

# built_tests PRESET: a regular expression of the tests whose programs were built. A sanitizer preset builds named
# targets only, while CTest lists every test.
built_tests() {
  local name names=""
  for name in $(ctest --test-dir "$REPRISE_ROOT/build/$1" -N | sed -n 's/^ *Test *#[0-9]*: //p'); do
    [ -x "$REPRISE_ROOT/build/$1/tests/bin/$name" ] && names="$names|$name"
  done
  printf '^(%s)$' "${names#|}"
}

# run_ctest PRESET [CTEST ARGUMENT...]: runs a build's tests and adds up what CTest counted.
run_ctest() {
  local preset=$1 log=$REPRISE_ROOT/build/ctest-$1.log line bad total
  shift
  say "testing ($preset)"
  ctest --test-dir "$REPRISE_ROOT/build/$preset" -LE gpu -j 2 --output-on-failure "$@" >"$log" 2>&1
  line=$(grep -E 'tests passed, [0-9]+ tests? failed out of [0-9]+' "$log" | tail -n 1)
  bad=$(printf '%s' "$line" | sed -n 's/.*passed, \([0-9]*\) tests\{0,1\} failed.*/\1/p')
  total=$(printf '%s' "$line" | sed -n 's/.*out of \([0-9]*\).*/\1/p')
  if [ -z "$total" ]; then
    tail -n 5 "$log"
    fail "ctest gave no count for $preset; see $log"
  fi
  [ "$bad" -eq 0 ] || sed -n '/\*\*\*/,/^ *[0-9]*\/[0-9]* Test/p; /The following tests FAILED/,$p' "$log" | tail -n 120
  failed=$((failed + bad))
  passed=$((passed + total - bad))
}

ensure_disk "$REPRISE_ROOT" 8
ensure_cuda
[ -n "${REPRISE_SKIP_PACKAGES:-}" ] || ensure_packages
build release all
run_ctest release
if [ -z "$quick" ]; then
  say "style"
  count format bash "$REPRISE_ROOT/tests/lint.sh" --format
  count headers cmake --build "$REPRISE_ROOT/build/release" --target header_check
  count tidy bash "$REPRISE_ROOT/tests/lint.sh" --tidy
  for preset in asan tsan; do
    build "$preset" sanitized_tests
    run_ctest "$preset" -R "$(built_tests "$preset")"
  done
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
