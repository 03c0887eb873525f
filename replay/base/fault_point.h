// Places where something may go wrong on purpose. In the product nothing does;
// a program of the tests links another definition (tests/integration/faulty).
#ifndef REPRISE_REPLAY_BASE_FAULT_POINT_H_
#define REPRISE_REPLAY_BASE_FAULT_POINT_H_

namespace reprise {

// What the place has to do itself. A process that is to die or to hang does so
// in PassFaultPoint.
enum class Fault { kNone, kGarbled, kDiskFull };

// Thread-safe.
Fault PassFaultPoint(const char* place);

}  // namespace reprise

#endif  // REPRISE_REPLAY_BASE_FAULT_POINT_H_
