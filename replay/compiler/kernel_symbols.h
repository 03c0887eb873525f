// Names of kernels and device variables across compilers. nvcc and Clang mangle
// static, anonymous-namespace and relocatable symbols differently. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_KERNEL_SYMBOLS_H_
#define REPRISE_REPLAY_COMPILER_KERNEL_SYMBOLS_H_

#include <string>
#include <vector>

namespace reprise {

// "k(float*, int)"; the symbol itself where it is not mangled.
std::string DemangledName(const std::string& symbol);

// Equal for the names that nvcc and Clang give the same entity of one
// translation unit: demangled, without what makes names unique in a program.
std::string NormalizedSymbol(const std::string& symbol);

// "ns::k<float, 4>" of "void ns::k<float, 4>(float*)": how C++ names the
// kernel. Anonymous namespaces are left out.
std::string KernelExpression(const std::string& symbol);

// The same without template arguments.
std::string QualifiedKernelName(const std::string& symbol);

// Index in `symbols` of `wanted`: the equal one, else the only one that is
// equal when normalized; -1: none or several.
int FindSymbol(const std::vector<std::string>& symbols,
               const std::string& wanted);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_KERNEL_SYMBOLS_H_
