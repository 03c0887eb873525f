#!/usr/bin/env python3
"""Tries every bad input of docs/failure-catalogue.md and checks exit code and message.

  failure_catalogue.py --build-dir DIR [--markdown docs/failure-catalogue.md]

Ends with a count line; exits 0 when every case failed as it should. The disk-full case needs root (it mounts a small
tmpfs) and is left out, and said so, without.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

ADD_KERNEL = """
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
__global__ void AddOne(int* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] += 1; }
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000, times = argc > 2 ? atoi(argv[2]) : 1;
  int* a;
  if (cudaMalloc(&a, n * sizeof(int)) != cudaSuccess || cudaMemset(a, 0, n * sizeof(int)) != cudaSuccess) return 3;
  for (int i = 0; i < times; ++i) AddOne<<<(n + 127) / 128, 128>>>(a, n);
  int last = 0;
  cudaError_t error = cudaMemcpy(&last, a + n - 1, sizeof(int), cudaMemcpyDeviceToHost);
  printf("last=%d %s\\n", last, cudaGetErrorString(error));
  return last == times ? 0 : 4;
}
"""
NOTHING = "#include <cuda_runtime.h>\nint main() { int n = 0; cudaGetDeviceCount(&n); return n == 1 ? 0 : 1; }\n"
WILD_WRITE = """
#include <cuda_runtime.h>
#include <cstdio>
__global__ void Wild(int* a) { a[threadIdx.x + (1 << 20)] = 1; }
int main() {
  int* a;
  cudaMalloc(&a, 1024);
  Wild<<<1, 32>>>(a);
  printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 5;
}
"""
ENDLESS = """
#include <cuda_runtime.h>
#include <cstdio>
__global__ void Endless(volatile int* a) { while (a[0] == 0) a[1] += 1; }
int main() {
  int* a;
  cudaMalloc(&a, 1024);
  cudaMemset(a, 0, 1024);
  Endless<<<1, 1>>>(a);
  printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 7;
}
"""
RECURSION = """
#include <cuda_runtime.h>
#include <cstdio>
__device__ __noinline__ int Deep(int n, volatile int* a) {
  volatile int frame[64];
  frame[n % 64] = a[0];
  return n == 0 ? 0 : Deep(n - 1, a) + frame[n % 64];
}
__global__ void Recurse(int* a, int n) { a[0] = Deep(n, a); }
int main() {
  int* a;
  cudaMalloc(&a, 1024);
  Recurse<<<1, 1>>>(a, 1 << 24);
  printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 8;
}
"""
TENSOR_CORES = """
#include <cuda_runtime.h>
#include <cstdio>
__global__ void Tensor(float* a) {
  float d0, d1, d2, d3;
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%5,%5,%5,%5};"
               : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3) : "r"(1), "f"(0.0f));
  a[threadIdx.x] = d0 + d1 + d2 + d3;
}
int main() {
  float* a;
  cudaMalloc(&a, 1024);
  Tensor<<<1, 32>>>(a);
  printf("%s\\n", cudaGetErrorString(cudaGetLastError()));
  return 6;
}
"""


class Catalogue:
    def __init__(self, build_dir, work):
        self.reprise = str(pathlib.Path(build_dir).resolve() / "bin/reprise")
        self.work = pathlib.Path(work)
        self.environment = dict(os.environ, REPRISE_HOME=str(self.work / "home"), REPRISE_STORE=str(self.work / "units"),
                                XDG_CONFIG_HOME=str(self.work / "config"), NO_COLOR="1")
        self.cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        self.entries = []
        self.failed = 0

    def run(self, arguments, **kwargs):
        return subprocess.run([self.reprise] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=300, env=self.environment, cwd=self.work, **kwargs)

    def program(self, name, source, launcher=True, static=False):
        (self.work / f"{name}.cu").write_text(source)
        command = ["clang++-22", "-O2", "--cuda-gpu-arch=sm_90", f"--cuda-path={self.cuda}",
                   "-Wno-unknown-cuda-version", f"{name}.cu", "-o", name, f"-L{self.cuda}/lib64",
                   f"-Wl,-rpath,{self.cuda}/lib64"]
        command += ["-lcudart_static", "-ldl", "-lrt", "-lpthread"] if static else ["-lcudart"]
        if launcher:
            command = [self.reprise, "cc"] + command
        subprocess.run(command, check=True, env=self.environment, cwd=self.work, timeout=120)
        return f"./{name}"

    def shown(self, text):
        text = text.replace(self.reprise, "reprise").replace(str(self.work), "/tmp/example")
        return re.sub(r"\n{2,}", "\n", text.strip())

    def case(self, title, arguments, exit_code, expected, note="", result=None):
        """Expects every regular expression of `expected` in standard error."""
        done = result or self.run(arguments)
        problems = [] if done.returncode == exit_code else [f"exit {done.returncode}, expected {exit_code}"]
        problems += [f"no match for {want!r}" for want in expected if not re.search(want, done.stderr)]
        self.failed += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '} {title}" + "".join(f"\n       {problem}" for problem in problems))
        if problems:
            print("       " + done.stderr.strip().replace("\n", "\n       "))
        self.entries.append((title, " ".join(["reprise"] + arguments), self.shown(done.stderr), done.returncode, note))

    def usage_cases(self):
        self.case("unknown flag", ["optimize", "AddOne", "--budgt", "20s"], 2, ["budgt", "--help"])
        self.case("unknown verb", ["optimise"], 2, ["got 'optimise', expected a verb", "did you mean optimize"])
        self.case("option before the verb", ["--store", "mine", "units"], 2, ["got '--store'", "options follow the verb"])
        self.case("duration that is none", ["optimize", "AddOne", "--budget", "soon"], 2, ["got duration 'soon', expected"])
        self.case("tolerance that is none", ["replay", "AddOne", "--tolerance", "tight"], 2, ["got tolerance 'tight'"])
        (self.work / "reprise.yaml").write_text("threads: 2\ndevise: cpu\n")
        self.case("unknown key in reprise.yaml", ["units"], 2, [r"reprise.yaml:2: got setting 'devise', expected one of"])
        (self.work / "reprise.yaml").unlink()

    def store_cases(self):
        self.case("no store yet", ["units", "--store", "nowhere"], 1, ["nowhere.*record a unit first"])
        (self.work / "empty").mkdir()
        self.run(["doctor", "--store", "empty"])
        self.case("empty store", ["units", "--store", "empty"], 1, ["is empty; record a unit first"])
        self.case("unit that is not there", ["replay", "Nothing"], 1, ["Nothing"])
        self.case("beginning that several units have", ["replay", "AddOne"], 2, ["AddOne-"],
                  "Two instances of one kernel were recorded; the message names both.")

    def record_cases(self):
        add = self.program("add", ADD_KERNEL)
        assert self.run(["record", "--", add, "1000"]).returncode == 0
        assert self.run(["record", "--", add, "500"]).returncode == 0
        assert self.run(["record", "--store", "one", "--", add, "500"]).returncode == 0
        self.case("device that is none", ["replay", "AddOne-", "--device", "gpu", "--store", "one"], 2,
                  ["got device 'gpu', expected"])
        self.case("no command", ["record"], 2, ["command"])
        self.case("application that is not there", ["record", "--", "./missing"], 1, ["missing"])
        self.case("no kernel of that name", ["record", "--kernel", "Multiply", "--", add], 1, ["AddOne"],
                  "The kernels that were launched are listed.")
        self.case("regular expression that is none", ["record", "--kernel", "a(", "--", add], 2, [r"a\("])
        self.case("no unit of any kernel", ["record", "--count", "0", "--", add], 2, ["got --count 0, expected"])
        nothing = self.program("nothing", NOTHING)
        self.case("application that launches nothing", ["record", "--", nothing], 1, ["launched no kernel"])
        unknown = self.program("unknown", ADD_KERNEL.replace("AddOne", "AddTwo"), launcher=False)
        self.case("application not built with reprise cc", ["record", "--", unknown], 4, ["reprise cc"],
                  "The application sees cudaErrorNoKernelImageForDevice and ends as it does then.")
        static = self.program("static", ADD_KERNEL, static=True)
        self.case("CUDA runtime linked statically", ["record", "--", static], 3, ["static"])
        commands = self.work / "compile_commands.json"
        commands.write_text('[{"directory": "%s", "file": "gone.cu", "arguments": ["clang++-22", "-x", "cuda", '
                            '"--cuda-gpu-arch=sm_90", "-c", "gone.cu"]}]' % self.work)
        self.case("unreadable source", ["record", "--compile-commands", "compile_commands.json", "--", unknown], 4,
                  ["gone.cu"])
        self.case("more memory than --max-bytes", ["record", "--max-bytes", "4KiB", "--store", "small", "--", add, "100000"],
                  1, ["max-bytes|larger|memory"])
        wild = self.program("wild", WILD_WRITE)
        self.case("kernel that writes out of bounds", ["record", "--", wild], 5, ["0x[0-9a-f]+"],
                  "The application sees the sticky error that CUDA gives, and its own exit code stands.")
        endless = self.program("endless", ENDLESS)
        self.case("kernel that does not end", ["record", "--launch-timeout", "2s", "--", endless], 7, ["did not end within 2s"],
                  "Its runs on a copy of the memory are tried first, so that twice the time is spent in all.")
        recursion = self.program("recursion", RECURSION)
        self.case("recursion without end", ["record", "--", recursion], 8, ["stack overflow"])
        tensor = self.program("tensor", TENSOR_CORES)
        self.case("instruction the cpu device cannot run", ["record", "--", tensor], 6, ["mma.sync"])

    def signal_case(self):
        add = self.program("add_many", ADD_KERNEL)
        process = subprocess.Popen([self.reprise, "record", "--store", "interrupted", "--", add, "1000000", "100000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment,
                                   cwd=self.work, start_new_session=True)
        # Signal when the first launch has been kept; the application goes on for much longer.
        chunks = self.work / "interrupted/chunks"
        deadline = time.monotonic() + 120
        while not any(chunks.glob("*/*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        done = subprocess.CompletedProcess([], process.returncode, out, err)
        self.case("Ctrl-C while recording", ["record", "--store", "interrupted", "--", add, "1000000", "100000"], 130,
                  ["recorded AddOne-"], "What was finished is kept, whole.", result=done)
        check = self.run(["units", "--verify", "--store", "interrupted"])
        self.failed += check.returncode != 0
        print(f"{'ok  ' if check.returncode == 0 else 'FAIL'} units after Ctrl-C are whole: {check.stdout.strip()}")

        endless = ["record", "--store", "stopped", "--launch-timeout", "1h", "--", "./endless"]
        process = subprocess.Popen([self.reprise] + endless, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment, cwd=self.work, start_new_session=True)
        time.sleep(5)  # at most the message depends on it
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.case("Ctrl-C while a kernel runs", endless, 130, [], "The launch is given up; nobody waits for it any more.",
                  result=subprocess.CompletedProcess([], process.returncode, out, err))

    def damage_cases(self):
        unit = sorted((self.work / "units/units").iterdir())[0]
        manifest = unit / "manifest"
        original = manifest.read_bytes()
        manifest.write_bytes(original[: len(original) // 2])
        self.case("truncated manifest", ["inspect", unit.name], 1, ["manifest"])
        flipped = bytearray(original)
        flipped[-1] ^= 1
        manifest.write_bytes(bytes(flipped))
        self.case("flipped bit in a manifest", ["inspect", unit.name], 1, ["manifest"])
        manifest.write_bytes(b"something else entirely, and long enough to be looked at")
        self.case("foreign file as manifest", ["inspect", unit.name], 2, ["not a Reprise unit manifest"])
        manifest.write_bytes(original)

    def result_cases(self):
        other = self.program("sub", ADD_KERNEL.replace("AddOne", "SubOne").replace("+= 1", "-= -1"))
        assert self.run(["record", "--store", "one", "--", other, "500"]).returncode == 0
        self.run(["optimize", "--store", "one", "--trials", "1", "--budget", "2s", "AddOne"])
        result = next((self.work / "reprise-results").iterdir())
        self.case("result of another kernel", ["replay", "--store", "one", "SubOne", "--result",
                                               str(result.relative_to(self.work))], 2, ["got a result for AddOne"])
        self.case("result that is not there", ["apply", "no-results", "--", "./add"], 1, ["no-results", "reprise optimize"])

    def serve_cases(self):
        serve = ["serve", "--device", "cpu", "--store", "one", "--listen"]
        self.case("serving other hosts without certificates", serve + ["0.0.0.0:7411"], 2, ["reprise certs DIR"])
        self.case("certificates that are not there", serve + ["0.0.0.0:7411", "--certs", "nowhere"], 1,
                  ["no nowhere/ca.pem; make it: reprise certs nowhere"])
        for directory in ("certs", "other"):
            assert self.run(["certs", directory]).returncode == 0
        self.case("certificates of a longer life than their authority's", ["certs", "certs", "--days", "4000"], 1,
                  ["ends on", "fewer --days"])
        for part in ("pem", "key"):
            shutil.copy(self.work / f"other/server.{part}", self.work / f"certs/server.{part}")
        self.case("certificate of another authority", serve + ["0.0.0.0:7411", "--certs", "certs"], 1,
                  ["does not hold under ca.pem", "reprise certs certs"], "The same is said of one that has expired.")
        (self.work / "other/server.key").chmod(0o644)
        self.case("private key that others can read", serve + ["0.0.0.0:7411", "--certs", "other"], 1, ["chmod go="])
        self.case("metrics for other hosts", serve + ["127.0.0.1:0", "--metrics", "0.0.0.0:9464"], 2, ["loopback"])
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            result = self.run(serve + [f"127.0.0.1:{port}"])
            result.stderr = result.stderr.replace(str(port), "7411")
            self.case("address that somebody has", serve + ["127.0.0.1:7411"], 2, ["somebody else listens there"],
                      result=result)

    def disk_full_case(self):
        if os.geteuid() != 0:
            print("left out: disk full (needs root to mount a small tmpfs)")
            return
        mount = self.work / "full"
        mount.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)]).returncode != 0:
            print("left out: disk full (cannot mount a tmpfs here)")
            return
        try:
            self.case("disk full", ["record", "--store", "full/units", "--", "./add", "1000"], 1,
                      ["disk full|No space left"], "The application runs on; nothing half-written stays.")
        finally:
            subprocess.run(["umount", str(mount)], check=False)

    def markdown(self):
        lines = ["# Failure catalogue", "",
                 "What goes wrong, and what Reprise says. Every entry was tried; this page is made by", "",
                 "    python3 tests/integration/failure_catalogue.py --build-dir build/release --markdown "
                 "docs/failure-catalogue.md", ""]
        for title, command, message, code, note in self.entries:
            lines += [f"## {title[0].upper()}{title[1:]}", "", f"    $ {command}"]
            lines += [f"    {line}" for line in message.splitlines()]
            lines += [f"    (exit {code})", ""]
            if note:
                lines += [note, ""]
        return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--markdown")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reprise-failures") as work:
        catalogue = Catalogue(arguments.build_dir, work)
        catalogue.usage_cases()
        catalogue.record_cases()
        catalogue.store_cases()
        catalogue.signal_case()
        catalogue.damage_cases()
        catalogue.result_cases()
        catalogue.serve_cases()
        catalogue.disk_full_case()
    if arguments.markdown:
        pathlib.Path(arguments.markdown).write_text(catalogue.markdown())
    print(f"{len(catalogue.entries) - catalogue.failed} passed, {catalogue.failed} failed")
    return 0 if catalogue.failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
