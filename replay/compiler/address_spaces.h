// NVPTX's address spaces, as numbered in LLVM IR.
#ifndef REPRISE_REPLAY_COMPILER_ADDRESS_SPACES_H_
#define REPRISE_REPLAY_COMPILER_ADDRESS_SPACES_H_

namespace reprise {

inline constexpr unsigned kGlobalSpace = 1;
inline constexpr unsigned kSharedSpace = 3;
inline constexpr unsigned kConstantSpace = 4;

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_ADDRESS_SPACES_H_
