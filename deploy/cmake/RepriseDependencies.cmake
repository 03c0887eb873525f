# Everything Reprise links, found once, with one clear message for what is missing.
include(FindPackageHandleStandardArgs)

function(reprise_require_program variable name package)
  find_program(${variable} NAMES ${name})
  if(NOT ${variable})
    message(FATAL_ERROR "${name} was not found; install it with: apt-get install ${package}")
  endif()
endfunction()

# --- LLVM and Clang 22, static libraries only: CMake's Clang targets would bring libLLVM.so in beside the
# static LLVM, and two copies of LLVM in one process recurse without end.
find_program(REPRISE_LLVM_CONFIG NAMES llvm-config-22 HINTS /usr/lib/llvm-22/bin)
if(NOT REPRISE_LLVM_CONFIG)
  message(FATAL_ERROR "LLVM 22 was not found (no llvm-config-22); install it with: "
    "apt-get install llvm-22-dev libclang-22-dev clang-22 lld-22")
endif()
set(_components x86codegen x86asmparser x86desc x86info nvptxcodegen nvptxdesc nvptxinfo orcjit passes irreader
  bitreader bitwriter linker frontenddriver frontendopenmp frontendhlsl frontendoffloading option coverage lto
  instrumentation objcarcopts ipo vectorize windowsdriver hipstdpar)
execute_process(COMMAND ${REPRISE_LLVM_CONFIG} --version OUTPUT_VARIABLE REPRISE_LLVM_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT REPRISE_LLVM_VERSION MATCHES "^22\\.")
  message(FATAL_ERROR "got LLVM ${REPRISE_LLVM_VERSION} from ${REPRISE_LLVM_CONFIG}, expected 22; "
    "install llvm-22-dev or pass -DREPRISE_LLVM_CONFIG=/path/to/llvm-config-22")
endif()
execute_process(COMMAND ${REPRISE_LLVM_CONFIG} --includedir OUTPUT_VARIABLE _include OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${REPRISE_LLVM_CONFIG} --libdir OUTPUT_VARIABLE _libdir OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${REPRISE_LLVM_CONFIG} --bindir OUTPUT_VARIABLE REPRISE_LLVM_BINDIR OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${REPRISE_LLVM_CONFIG} --link-static --libs ${_components} OUTPUT_VARIABLE _libs
  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _result)
execute_process(COMMAND ${REPRISE_LLVM_CONFIG} --link-static --system-libs ${_components} OUTPUT_VARIABLE _system
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT _result EQUAL 0)
  message(FATAL_ERROR "${REPRISE_LLVM_CONFIG} has no static libraries; install them with: apt-get install llvm-22-dev")
endif()
if(NOT EXISTS ${_libdir}/libclangCodeGen.a)
  message(FATAL_ERROR "the static Clang libraries are missing from ${_libdir}; install them with: apt-get install libclang-22-dev")
endif()
separate_arguments(_libs)
separate_arguments(_system)
add_library(reprise_llvm INTERFACE)
target_include_directories(reprise_llvm SYSTEM INTERFACE ${_include})
target_link_directories(reprise_llvm INTERFACE ${_libdir})
target_link_libraries(reprise_llvm INTERFACE -Wl,--start-group
  clangTooling clangToolingCore clangRewrite clangASTMatchers clangFrontendTool clangFrontend clangDriver
  clangSerialization clangCodeGen clangParse clangSema clangAnalysis clangEdit clangAnalysisLifetimeSafety
  clangAPINotes clangAST clangLex clangSupport clangOptions clangBasic ${_libs} -Wl,--end-group ${_system})

# --- The CUDA toolkit: headers, libdevice and nvJitLink. No GPU and no driver are needed to build.
set(REPRISE_CUDA_HOME "" CACHE PATH "CUDA 13 toolkit; default: $CUDA_HOME, then /usr/local/cuda")
if(NOT REPRISE_CUDA_HOME)
  if(DEFINED ENV{CUDA_HOME})
    set(REPRISE_CUDA_HOME $ENV{CUDA_HOME})
  else()
    set(REPRISE_CUDA_HOME /usr/local/cuda)
  endif()
endif()
if(NOT EXISTS ${REPRISE_CUDA_HOME}/include/cuda.h)
  message(FATAL_ERROR "no CUDA toolkit at ${REPRISE_CUDA_HOME} (no include/cuda.h); install CUDA 13.0, or pass "
    "-DREPRISE_CUDA_HOME=DIR or set CUDA_HOME")
endif()
add_library(reprise_cuda_headers INTERFACE)
target_include_directories(reprise_cuda_headers SYSTEM INTERFACE ${REPRISE_CUDA_HOME}/include)

# --- Libraries from Debian.
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(absl REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CURL 7.85 REQUIRED)  # CURLOPT_PROTOCOLS_STR
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(NLOPT REQUIRED IMPORTED_TARGET nlopt)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(yaml-cpp REQUIRED)
find_package(gRPC REQUIRED)
find_package(prometheus-cpp REQUIRED)
