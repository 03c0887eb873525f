// `reprise cc COMPILER ARGS...`: a compiler launcher, used like ccache. Runs
// the real compiler with the same arguments and streams, and keeps what
// `reprise record` will need in the build registry. The objects are those that
// the compiler makes without it; only compilations of CUDA sources and links
// cost anything. What cannot be kept is a warning on standard error, never a
// failure of the build.
#ifndef REPRISE_REPLAY_RECORDER_CC_LAUNCHER_H_
#define REPRISE_REPLAY_RECORDER_CC_LAUNCHER_H_

namespace reprise {

// argv[0] is the compiler. Returns the compiler's exit code, 127 where it
// cannot be run, 2 without arguments; dies by the signal that the compiler died
// by. Where there is nothing to keep it becomes the compiler and does not
// return.
int CompilerLauncherMain(int argc, char** argv);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_CC_LAUNCHER_H_
