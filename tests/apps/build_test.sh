#!/usr/bin/env bash
# Tests build.sh on a copy with two tiny applications, one of them broken.
# Needs Clang and the CUDA toolkit as build.sh finds them, no GPU. Prints one
# line per failed expectation and a closing count; exits 1 if any failed.
set -u

apps_dir=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failures=0
expectations=0

expect() { # DESCRIPTION CONDITION...
  expectations=$((expectations + 1))
  "${@:2}" && return
  failures=$((failures + 1))
  echo "FAILED: $1; build.sh printed:"
  cat "$work/log"
}

# Runs the copied build.sh from another directory; sets status.
build() {
  (cd / && "$copy/build.sh" "$@") >"$work/log" 2>&1
  status=$?
}
printed() { grep -qF -- "$1" "$work/log"; }
exited() { ((status == $1)); }

copy="$work/a folder"
mkdir -p "$copy/good" "$copy/broken"
cp "$apps_dir/build.sh" "$copy"
printf '__device__ int Twice(int x);\n__global__ void K(int* p) { *p = Twice(*p); }\nint main() {}\n' >"$copy/good/a.cu"
printf '__device__ int Twice(int x) { return 2 * x; }\n' >"$copy/good/b.cu"
printf 'int main() { return undeclared; }\n' >"$copy/broken/broken.cu"
printf '# header\ngood\ta.cu,b.cu\t-rdc=true\t-\tK\tdescription\nbroken\tbroken.cu\t-\t-\tK\tdescription\n' >"$copy/apps.tsv"
cat >"$work/launcher" <<'SCRIPT'
#!/usr/bin/env bash
echo "$*" >>"$1"
shift
exec "$@"
SCRIPT
chmod +x "$work/launcher"

build --compiler clang --out "$work/an out" --launcher "$work/launcher $work/calls" good
expect "a good application builds" exited 0
expect "the program is in the output folder" test -x "$work/an out/good"
expect "the program runs" "$work/an out/good"
expect "the launcher sees two compiles and a link" test "$(wc -l <"$work/calls")" = 3
expect "compiles carry -c" test "$(grep -c -- ' -c ' "$work/calls")" = 2

build --compiler clang --out "$work/an out"
expect "a broken source fails the build" exited 1
expect "the compiler's error is shown" printed undeclared
expect "the broken application is named" printed "could not build broken"
expect "the good application was still built" printed "built good"

build --compiler clang --out "$work/an out" nosuch
expect "an unknown name is bad usage" exited 2
expect "the known names are listed" printed "apps.tsv has: broken good"

mkdir -p "$copy/image"
printf '#ifndef __CUDA__\nextern "C" const unsigned char kernels_image[];\nint main() { return kernels_image[0] == 0; }\n#endif\n' >"$copy/image/main.cc"
printf '#include "kernels.h"\n' >"$copy/image/kernels.image.cu"
printf 'extern "C" __global__ void K(int* p) { *p = 1; }\n' >"$copy/image/kernels.h"
printf 'image\tmain.cc,kernels.image.cu\t-cudart=none -lm\t-\tK\tdescription\town\nflags\ta.cu\t-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=compute_90 -Xfatbin=-compress-all --default-stream=per-thread\t-\tK\tdescription\town\n' >"$work/other.tsv"
mkdir -p "$copy/flags"
printf '#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM\n#error one default stream\n#endif\nint main() {}\n' >"$copy/flags/a.cu"
: >"$work/calls"
build --compiler clang --out "$work/an out" --table "$work/other.tsv" --launcher "$work/launcher $work/calls"
expect "another table's applications build" exited 0
expect "only those are built" printed "built 2 applications"
expect "a .cc is compiled for the host alone" test -z "$(grep -F main.cc "$work/calls" | grep -F -- '-x cuda')"
expect "the program finds the embedded image" "$work/an out/image"
expect "an application can do without the runtime" test -z "$(grep -F -- '-o '"$work/an out/image" "$work/calls" | grep -F -- -lcudart)"
expect "libraries come with the link" test "$(grep -c -- ' -lm' "$work/calls")" = 1
expect "architectures replace --arch" test "$(grep -F flags/a.cu "$work/calls" | grep -cF -- '--cuda-gpu-arch=sm_80 --cuda-include-ptx=sm_90')" = 1

build --compiler clang --out "$work/an out" --table "$work/other.tsv" good
expect "another table does not know apps.tsv's" exited 2
expect "the other table is named" printed "other.tsv has: flags image"
build --compiler clang --out "$work/an out" --table "$work/nowhere.tsv"
expect "a missing table is bad usage" exited 2

build --compiler gcc --out "$work/an out"
expect "an unknown compiler is bad usage" exited 2
build --compiler clang
expect "a missing --out is bad usage" exited 2
expect "a missing --out is named" printed "--out DIR is missing"
build --out
expect "a missing value is bad usage" exited 2

build --compiler clang --out "$work/an out" --cuda "$work/nowhere" good
expect "a missing toolkit fails" exited 1
expect "a missing toolkit is named" printed "no CUDA toolkit in $work/nowhere"
CLANGXX=no-such-clang build --compiler clang --out "$work/an out" good
expect "a missing compiler fails" exited 1
expect "a missing compiler is named" printed "no Clang compiler"

echo "build_test.sh: $((expectations - failures)) of $expectations expectations hold"
((failures == 0))
