// Sizes of ptx_cases.cu, for the kernels and for who launches them.
#ifndef REPRISE_TESTS_REPLAY_DEVICE_KERNELS_PTX_CASES_H_
#define REPRISE_TESTS_REPLAY_DEVICE_KERNELS_PTX_CASES_H_

inline constexpr unsigned kPtxSamples = 1u << 18;
inline constexpr unsigned kPtxRow = 1u << 10;  // samples of one digest
inline constexpr unsigned kPtxRows = kPtxSamples / kPtxRow;

#endif  // REPRISE_TESTS_REPLAY_DEVICE_KERNELS_PTX_CASES_H_
