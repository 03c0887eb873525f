/* Another preloaded library that stands in front of dlsym itself, as tools that
 * trace or meter CUDA do: it finds the next dlsym by dlvsym and puts itself in
 * front of what cuGetProcAddress answers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef void* (*Dlsym)(void*, const char*);
typedef int (*GetProcAddress)(const char*, void**, int, unsigned long long,
                              void*);
typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned,
                      unsigned, unsigned, void*, void**, void**);

static GetProcAddress next_get;
static Launch next_launch;

static Dlsym NextDlsym(void) {
  static Dlsym next;
  if (next == 0) next = (Dlsym)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return next;
}

static int TracedLaunch(void* f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        void* stream, void** parameters, void** extra) {
  printf("tracer saw a launch\n");
  return next_launch(f, gx, gy, gz, bx, by, bz, shared, stream, parameters,
                     extra);
}

static int TracedGetProcAddress(const char* symbol, void** address, int version,
                                unsigned long long flags, void* status) {
  const int result = next_get(symbol, address, version, flags, status);
  if (result == 0 && strcmp(symbol, "cuLaunchKernel") == 0) {
    next_launch = (Launch)*address;
    *address = (void*)TracedLaunch;
  }
  return result;
}

void* dlsym(void* handle, const char* symbol) {
  void* found = NextDlsym()(handle, symbol);
  if (found == 0 || strcmp(symbol, "cuGetProcAddress_v2") != 0) return found;
  next_get = (GetProcAddress)found;
  return (void*)TracedGetProcAddress;
}
