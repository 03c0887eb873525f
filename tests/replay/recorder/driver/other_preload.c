/* Another preloaded library that stands in front of cuLaunchKernel and of
 * malloc, as tracing tools do: each finds the next one by RTLD_NEXT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned,
                      unsigned, unsigned, void*, void**, void**);

int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, void* stream,
                   void** parameters, void** extra) {
  Launch next = (Launch)dlsym(RTLD_NEXT, "cuLaunchKernel");
  printf("other saw a launch\n");
  if (next == 0) return 999;
  if (next == (Launch)cuLaunchKernel) {
    printf("next is itself\n");
    return 999;
  }
  return next(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
