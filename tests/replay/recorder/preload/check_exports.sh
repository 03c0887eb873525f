#!/usr/bin/env bash
# Checks the stand-in library: it exports every call that libcudart exports, and nothing else; needs no glibc
# symbol newer than 2.28 and no C++ run-time library; defines no symbol versions.
# Usage: check_exports.sh LIBRARY LIBCUDART
set -eu
library=$1
real=$2
status=0

names() { nm -D --defined-only "$1" | awk '$2 ~ /^[TW]$/ {sub(/@.*/, "", $3); print $3}' | sort -u; }

missing=$(comm -23 <(names "$real") <(names "$library"))
if [[ -n $missing ]]; then
  echo "libcudart has calls that the stand-in lacks; add them to unsupported_calls.inc:" $missing
  status=1
fi
foreign=$(names "$library" | grep -Ev '^(__)?cuda' || true)
if [[ -n $foreign ]]; then
  echo "exported by mistake:" $foreign
  status=1
fi
newer=$(nm -D --undefined-only "$library" | grep -o '[^ ]*@GLIBC_2\.[0-9]*' |
  awk -F'2[.]' '{split($NF, v, "."); if (v[1] > 28) print}')
if [[ -n $newer ]]; then
  echo "needs a glibc newer than 2.28:" $newer
  status=1
fi
needed=$(objdump -p "$library" | awk '$1 == "NEEDED" {print $2}' | grep -Ev '^(libc\.so\.6|ld-linux-x86-64\.so\.2)$' || true)
if [[ -n $needed ]]; then
  echo "needs more than libc:" $needed
  status=1
fi
if objdump -p "$library" | grep -q '^Version definitions'; then
  echo "defines symbol versions; libcudart's versioned names would not bind to it"
  status=1
fi
exit $status
