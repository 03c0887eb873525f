# Writes the text of INPUT as a C string into OUTPUT, in pieces that compilers take.
file(READ ${INPUT} text)
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8000 piece)
  string(APPEND pieces "R\"ptx(${piece})ptx\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${OUTPUT} "// Made from support_kernels.cu.
#include \"replay/device/cuda/executor/gpu.h\"

namespace reprise::cuda {
const char* SupportKernelsPtx() {
  return
${pieces};
}
}  // namespace reprise::cuda
")
