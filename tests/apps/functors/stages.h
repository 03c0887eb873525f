// The two stages of functors. Each lives in a translation unit of its own and
// has a functor named Step, a kernel named FinishKernel and a constant buffer
// that the other stage has too, with other contents.
#ifndef REPRISE_TESTS_APPS_FUNCTORS_STAGES_H_
#define REPRISE_TESTS_APPS_FUNCTORS_STAGES_H_

// A field that functors carry along: 1500 coefficients, 6 KB.
struct Table {
  static constexpr int kEntries = 1500;
  unsigned int entries[kEntries];
};

// Both change `values` (device memory, `count` elements) in place, modulo 2^32,
// on the default stream:
// v = v + table[i mod 1500], then v ^= v >> 5.
void RunFirst(unsigned int* values, int count, const Table& table);
// v = v * 3 + table[1499 - i mod 1500], then v ^= v << 3.
void RunSecond(unsigned int* values, int count, const Table& table);

#endif  // REPRISE_TESTS_APPS_FUNCTORS_STAGES_H_
