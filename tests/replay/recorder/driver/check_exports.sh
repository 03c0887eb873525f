#!/usr/bin/env bash
# Checks the driver recorder's library: it exports the hooked calls and dlsym, and nothing else; needs no glibc
# symbol newer than 2.28 and no C++ run-time library; gives versions to dlsym alone.
# Usage: check_exports.sh LIBRARY HOOK_TABLE
set -eu
library=$1
table=$2
status=0

exported=$(nm -D --defined-only "$library" | awk '{sub(/@.*/, "", $3); print $3}' | sort -u)
hooked=$( (tr -d '\n' < "$table" | grep -o 'HOOK(cu[A-Za-z0-9_]*' | cut -c6-; echo dlsym) | sort -u)
different=$(comm -3 <(echo "$exported") <(echo "$hooked"))
if [[ -n $different ]]; then
  echo "exported by mistake, or hooked and not exported:" $different
  status=1
fi
newer=$(nm -D --undefined-only "$library" | grep -o '[^ ]*@GLIBC_2\.[0-9]*' |
  awk -F'2[.]' '{split($NF, v, "."); if (v[1] > 28) print}')
if [[ -n $newer ]]; then
  echo "needs a glibc newer than 2.28:" $newer
  status=1
fi
needed=$(objdump -p "$library" | awk '$1 == "NEEDED" {print $2}' |
  grep -Ev '^(libc\.so\.6|libdl\.so\.2|ld-linux-x86-64\.so\.2)$' || true)
if [[ -n $needed ]]; then
  echo "needs more than libc:" $needed
  status=1
fi
versioned=$(nm -D --defined-only "$library" | awk '$3 ~ /@/ {print $3}' | sort | xargs)
if [[ $versioned != 'dlsym@@GLIBC_2.34 dlsym@GLIBC_2.2.5' ]]; then
  echo "gives versions to others than dlsym (libcuda's names would not bind to it), or not both: $versioned"
  status=1
fi
exit $status
