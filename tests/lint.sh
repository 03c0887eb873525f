#!/usr/bin/env bash
# Style and static analysis. Usage: bash tests/lint.sh --format | --fix | --tidy | --tidy-all
#   --format    clang-format finds nothing to change
#   --fix       lets clang-format change it
#   --tidy      clang-tidy on the product's sources that include no LLVM headers, without the path-sensitive analyzer
#   --tidy-all  clang-tidy on every source, with the analyzer (an hour)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sources() { git ls-files -- 'replay/*.cc' 'replay/*.h' 'bayesopt/*.cc' 'bayesopt/*.h' 'evolution/*.cc' 'evolution/*.h' \
  'services/*.cc' 'services/*.h' 'tests/*.cc' 'tests/*.h' ':!tests/apps' ':!*/testdata/*'; }

# Of the given sources, those whose compile command is known.
compiled() { sources | grep '\.cc$' | while read -r file; do
  grep -q "\"$PWD/$file\"" build/release/compile_commands.json && printf '%s\n' "$file"
done || true; }

tidy() { xargs -r -P 2 -n 4 clang-tidy-22 --quiet -p build/release "$@"; }

case "${1:-}" in
  --format) sources | xargs clang-format-22 --dry-run -Werror ;;
  --fix) sources | xargs clang-format-22 -i ;;
  --tidy)
    compiled | grep -vE '^(tests|evolution/ast)/' | xargs grep -LE '#include ["<](llvm|clang)/' |
      tidy --checks='-clang-analyzer-*'
    ;;
  --tidy-all) compiled | tidy ;;
  *)
    sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
