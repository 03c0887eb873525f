#!/bin/sh
# Starts a program of the bundle; deploy/bundle.sh copies this into bin/ under each program's name.
# The programs need glibc 2.@MINOR@. Where the host's is older they run on the one in lib/glibc, by its loader and not by
# environment variables, so that what they start runs on the host's. REPRISE_GLIBC=host or =bundled takes that one.
case $0 in
  */*) self=$0 ;;
  *) self=$(command -v -- "$0") ;;
esac
[ -h "$self" ] && self=$(readlink -f -- "$self")
name=${self##*/}

case ${REPRISE_GLIBC:-} in
  host) glibc=host ;;
  bundled) glibc=bundled ;;
  "")
    # "glibc 2.31"; anything else is no glibc that the programs could run on.
    minor=$(getconf GNU_LIBC_VERSION 2>/dev/null)
    minor=${minor#glibc 2.}
    minor=${minor%%[!0-9]*}
    if [ "${minor:-0}" -ge @MINOR@ ]; then glibc=host; else glibc=bundled; fi
    ;;
  *)
    echo "$name: got REPRISE_GLIBC=$REPRISE_GLIBC, expected host, bundled or nothing" >&2
    exit 2
    ;;
esac
[ $glibc = host ] && exec "${self%/*}/../libexec/$name" "$@"

root=$(cd "${self%/*}/.." && pwd -P)
# The option stands for LD_LIBRARY_PATH. The loader reads the host's ld.so.cache, which names the driver's folder.
path=$root/lib/glibc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:/usr/local/nvidia/lib64
[ -r /etc/ld.so.cache ] || path=$path:/lib64:/usr/lib64
exec "$root/lib/glibc/ld-linux-x86-64.so.2" --library-path "$path" "$root/libexec/$name" "$@"
