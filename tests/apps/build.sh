#!/usr/bin/env bash
# Builds the CUDA applications that apps.tsv, or another table like it, lists.
# Run with --help for usage.
# Each source becomes its own object and then the objects are linked, as a
# build system does it, so that a compiler launcher sees real command lines.
set -u

readonly kJobs=2
kAppsDir=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly kAppsDir

usage() {
  cat <<'TEXT'
usage: build.sh --compiler clang|nvcc --out DIR [--launcher "CMD..."]
                [--cudart shared|static] [--arch sm_90] [--cuda DIR] [--jobs N]
                [--table FILE] [NAME...]

Builds the named applications (default: every one in the table) to DIR/NAME,
with their objects in DIR/obj/NAME.

  --compiler  clang (CLANGXX, else clang++-22, else clang++) or nvcc (of the
              CUDA toolkit, else from PATH)
  --launcher  words put in front of every compile and link command
  --cudart    CUDA runtime to link with nvcc (default shared; nvcc's own
              default is static, which no stand-in can take the place of)
  --arch      GPU architecture (default sm_90)
  --cuda      CUDA toolkit (default $CUDA_HOME, else /usr/local/cuda)
  --jobs      applications built at the same time (default 2)
  --table     table of applications (default apps.tsv, beside this script);
              their sources lie beside this script, wherever the table does

Exit code: 0 all built, 1 a build failed or a tool is missing, 2 bad usage.
TEXT
}

fail() { # EXIT_CODE MESSAGE
  printf 'build.sh: %s\n' "$2" >&2
  exit "$1"
}

find_compiler() {
  if [[ ! -f $cuda/include/cuda_runtime.h ]]; then
    fail 1 "no CUDA toolkit in $cuda (no include/cuda_runtime.h); name one with --cuda or CUDA_HOME"
  fi
  local candidate
  if [[ $compiler == clang ]]; then
    for candidate in "${CLANGXX:-clang++-22}" "${CLANGXX:-clang++}"; do
      if command -v "$candidate" >/dev/null; then
        compiler_path=$candidate
        return
      fi
    done
    fail 1 "no Clang compiler (${CLANGXX:-clang++-22, clang++}); install clang-22 or set CLANGXX"
  fi
  for candidate in "$cuda/bin/nvcc" nvcc; do
    if command -v "$candidate" >/dev/null; then
      compiler_path=$candidate
      return
    fi
  done
  fail 1 "no nvcc in $cuda/bin or PATH; install the CUDA toolkit's compiler or use --compiler clang"
}

# Fills device_flags, link_flags, rdc and cudart_linked from one application's
# extra flags. Those are spelled as nvcc does; for Clang they are translated, and
# left out where Clang needs none. A -gencode takes the place of --arch.
split_flags() { # FLAG...
  local flag
  device_flags=() link_flags=() rdc=0 cudart_linked=$cudart
  local -a architectures=()
  for flag in "$@"; do
    case $flag in
      -l*) link_flags+=("$flag") ;;
      -rdc=true) rdc=1 ;;
      -cudart=none) cudart_linked=none ;;
      -gencode=*) architectures+=("$flag") ;;
      *) device_flags+=("$flag") ;;
    esac
  done
  if [[ $compiler == clang ]]; then
    translate_for_clang
  else
    ((${#architectures[@]})) || architectures=("-arch=$arch")
    device_flags+=("${architectures[@]}")
  fi
}

# What split_flags leaves to Clang: rewrites device_flags.
translate_for_clang() {
  local flag real
  local -a flags=("${device_flags[@]}")
  device_flags=()
  for flag in "${flags[@]}"; do
    case $flag in
      --extended-lambda | -Xfatbin=*) ;;
      --default-stream=per-thread)
        device_flags+=(-Xclang -fgpu-default-stream=per-thread)
        ;;
      *) device_flags+=("$flag") ;;
    esac
  done
  ((${#architectures[@]})) || device_flags+=("--cuda-gpu-arch=$arch")
  for flag in "${architectures[@]}"; do
    real=sm_${flag##*_}
    case $flag in
      *code=sm_*) device_flags+=("--cuda-gpu-arch=$real") ;;
      *code=compute_*) device_flags+=("--cuda-include-ptx=$real") ;;
    esac
  done
}

# Fills host_command (for .cc), device_command (for .cu) and link_command for
# one application's extra flags.
set_commands() { # FLAG...
  local rdc cudart_linked
  local -a device_flags link_flags
  split_flags "$@"
  local -a libraries=("-L$cuda/lib64" "-L$cuda/lib64/stubs" "${link_flags[@]}")
  if [[ $compiler == clang ]]; then
    host_command=("$compiler_path" -O3 -Wall "-I$kAppsDir" "-I$cuda/include")
    device_command=("$compiler_path" -O3 -Wall -x cuda "--cuda-path=$cuda"
      -Wno-unknown-cuda-version "-I$cuda/include/cccl" "-I$kAppsDir"
      "${device_flags[@]}")
    link_command=("$compiler_path" "${libraries[@]}"
      "-Wl,--enable-new-dtags" "-Wl,-rpath,$cuda/lib64")
    if ((rdc)); then
      device_command+=(-fgpu-rdc)
      link_command+=(--offload-link "--cuda-path=$cuda" -lcudadevrt
        -Xoffload-linker "-L$cuda/lib64" -Xoffload-linker -lcudadevrt)
    fi
    [[ $cudart_linked == none ]] || link_command+=(-lcudart)
  else
    device_command=("$compiler_path" -O3 -cudart "$cudart_linked"
      -Xcompiler -Wall "-I$kAppsDir" "${device_flags[@]}")
    host_command=("${device_command[@]}")
    link_command=("$compiler_path" "-arch=$arch" -cudart "$cudart_linked"
      "${libraries[@]}" -Xlinker --enable-new-dtags
      -Xlinker "-rpath=$cuda/lib64")
    if ((rdc)); then
      device_command+=(-rdc=true)
      link_command+=(-rdc=true)
    fi
  fi
}

run() { # COMMAND...; on failure the command line is shown
  "${launcher[@]}" "$@" && return 0
  printf 'failed: ' && printf '%q ' "${launcher[@]}" "$@" && echo
  return 1
}

# Compiles BASE.image.cu to device code alone, in a file, and puts that file
# into OBJECT as the array BASE_image, for programs that load it themselves.
build_image() { # SOURCE OBJECT
  local base=${1##*/}
  base=${base%.image.cu}
  local image=${2%.o}
  local kind=-fatbin
  [[ $compiler == nvcc ]] || kind='-c --cuda-device-only'
  # shellcheck disable=SC2086 # the kind is one word or two
  run "${device_command[@]}" $kind "$1" -o "$image" || return 1
  printf '%s\n' .section\ .rodata '.balign 64' ".globl ${base}_image" \
    "${base}_image:" ".incbin \"$image\"" \
    '.section .note.GNU-stack,"",@progbits' | as - -o "$2"
}

build_app() { # NAME SOURCES FLAGS
  local name=$1 source path object
  local -a sources flags=() objects=()
  IFS=, read -ra sources <<<"$2"
  [[ $3 == - ]] || read -ra flags <<<"$3"
  local -a host_command device_command link_command
  set_commands "${flags[@]}"
  mkdir -p -- "$out/obj/$name" || return 1
  rm -f -- "$out/$name"
  for source in "${sources[@]}"; do
    path=$kAppsDir/$name/$source
    object=$out/obj/$name/${source//\//_}.o
    case $source in
      *.image.cu) build_image "$path" "$object" ;;
      *.cc) run "${host_command[@]}" -c "$path" -o "$object" ;;
      *) run "${device_command[@]}" -c "$path" -o "$object" ;;
    esac || return 1
    objects+=("$object")
  done
  run "${link_command[0]}" "${objects[@]}" "${link_command[@]:1}" \
    -o "$out/$name"
}

# Reads the table and keeps the wanted rows in names, sources_of and flags_of.
read_table() { # WANTED_NAME...
  local name sources flags rest wanted
  while IFS=$'\t' read -r name sources flags rest || [[ -n $name ]]; do
    [[ -z $name || $name == \#* ]] && continue
    [[ -n $rest ]] || fail 1 "${table##*/}: line of '$name' has too few columns"
    sources_of[$name]=$sources
    flags_of[$name]=$flags
    (($#)) || names+=("$name")
  done <"$table"
  for wanted in "$@"; do
    [[ -n ${sources_of[$wanted]:-} ]] ||
      fail 2 "unknown application '$wanted'; ${table##*/} has: $(printf '%s\n' "${!sources_of[@]}" | sort | xargs)"
    names+=("$wanted")
  done
}

# Builds one application with its output in a log of its own, so that two
# builds do not interleave; says how it went.
build_and_report() { # NAME
  local log=$out/obj/$1.log
  if build_app "$1" "${sources_of[$1]}" "${flags_of[$1]}" >"$log" 2>&1; then
    cat -- "$log" >&2 # warnings
    echo "built $1"
  else
    cat -- "$log" >&2
    echo "build.sh: could not build $1" >&2
    return 1
  fi
}

main() {
  compiler='' out='' cudart=shared arch=sm_90 jobs=$kJobs
  cuda=${CUDA_HOME:-/usr/local/cuda}
  table=$kAppsDir/apps.tsv
  launcher=()
  local -a wanted=()
  while (($#)); do
    case $1 in
      --compiler | --out | --launcher | --cudart | --arch | --cuda | --jobs | \
        --table)
        (($# >= 2)) || fail 2 "$1 wants a value"
        case $1 in
          --compiler) compiler=$2 ;;
          --out) out=$2 ;;
          --launcher) read -ra launcher <<<"$2" ;;
          --cudart) cudart=$2 ;;
          --arch) arch=$2 ;;
          --cuda) cuda=$2 ;;
          --jobs) jobs=$2 ;;
          --table) table=$2 ;;
        esac
        shift 2
        ;;
      --help) usage && exit 0 ;;
      -*) usage >&2 && fail 2 "unknown argument $1" ;;
      *) wanted+=("$1") && shift ;;
    esac
  done
  [[ $compiler == clang || $compiler == nvcc ]] ||
    fail 2 "--compiler wants clang or nvcc, got '$compiler'"
  [[ -n $out ]] || fail 2 "--out DIR is missing"
  [[ $jobs =~ ^[1-9][0-9]*$ ]] || fail 2 "--jobs wants a number, got '$jobs'"
  [[ -r $table ]] || fail 2 "cannot read --table $table"

  names=()
  declare -gA sources_of=() flags_of=()
  read_table "${wanted[@]}"
  find_compiler
  mkdir -p -- "$out/obj" || fail 1 "cannot write to $out"
  out=$(cd -- "$out" && pwd)

  local name running=0 failed=0
  for name in "${names[@]}"; do
    if ((running == jobs)); then
      wait -n || failed=$((failed + 1))
      running=$((running - 1))
    fi
    build_and_report "$name" &
    running=$((running + 1))
  done
  for (( ; running > 0; --running)); do
    wait -n || failed=$((failed + 1))
  done
  ((failed == 0)) || fail 1 "$failed of ${#names[@]} applications failed"
  echo "built ${#names[@]} applications with $compiler into $out"
}

main "$@"
