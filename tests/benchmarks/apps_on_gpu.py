#!/usr/bin/env python3
"""Builds the applications of tests/apps with nvcc, runs them on this machine's GPU and measures them.

  apps_on_gpu.py [--json FILE] [--log FILE] [--build DIR] [--jobs N] [--sanitize]
                 [--cubins DIR --loader FILE] [NAME...]

Each application runs alone at its default size with --time, then all run at --small, and with --sanitize the --small
runs are repeated under compute-sanitizer's memcheck and racecheck. --cubins has the loader (the target load_cubins) load
every cubin of a directory (the target emit_cubins writes one). --json keeps what was measured in a file like
docs/benchmarks/apps-h200.json. Exits 0 when every program passed everything that was asked for; a missed target of time
is reported and is no error. Needs a CUDA toolkit and a GPU.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
APPS = ROOT / "tests/apps"
COMMAND = "python3 tests/benchmarks/apps_on_gpu.py --sanitize --json docs/benchmarks/apps-h200.json"
CUBINS = "emit_cubins tests/apps build/cubins; load_cubins build/cubins"
KERNEL_MS_TARGET = (0.2, 20.0)
WHOLE_PROGRAM_MS_TARGET = 5000.0
RUN_TIMEOUT_S = 120
BUILD_TIMEOUT_S = 3600


def read_names():
    lines = (APPS / "apps.tsv").read_text().splitlines()
    return [line.split("\t")[0] for line in lines if line.strip() and not line.startswith("#")]


def run(command, timeout_s=RUN_TIMEOUT_S):
    """Returns (exit code, output); a program that does not end in time gets exit code 124."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s,
                              encoding="utf-8", errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as expired:
        return 124, (expired.stdout or b"").decode("utf-8", "replace") + f"\nstopped after {timeout_s} s"
    except OSError as error:
        return 127, str(error)


def first_line(command, pattern):
    code, output = run(command)
    found = re.search(pattern, output)
    return found.group(0).strip() if code == 0 and found else f"unknown ({command[0]} did not say)"


def find_tool(cuda, name):
    bundled = cuda / "bin" / name
    return str(bundled) if bundled.exists() else shutil.which(name)


class Bench:
    """What one invocation runs and has measured so far."""

    def __init__(self, options, names):
        self.options = options
        self.names = names
        self.apps = pathlib.Path(options.build).resolve()
        self.cuda = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
        self.log = open(options.log, "w", encoding="utf-8") if options.log else None
        self.results = []
        self.failures = []

    def note(self, title, output):
        if self.log:
            self.log.write(f"=== {title}\n{output.rstrip()}\n")
            self.log.flush()

    def add(self, metric, value, unit, target, command=COMMAND):
        self.results.append({"metric": metric, "value": value, "unit": unit, "target": target, "command": command})

    def add_count(self, metric, passed):
        if not self.options.names:  # counts are of all applications
            self.add(metric, len(passed), "applications", f">= {len(self.names)}")

    def fail(self, what, output):
        self.failures.append(what)
        print(f"FAILED {what}\n{output.rstrip()[-2000:]}", flush=True)

    def build(self):
        code, output = run(["bash", str(APPS / "build.sh"), "--compiler", "nvcc", "--out", str(self.apps), "--jobs",
                            str(self.options.jobs)] + self.names, BUILD_TIMEOUT_S)
        self.note("build", output)
        if code != 0:
            self.fail("build", output)
        return [name for name in self.names if (self.apps / name).exists()]

    def run_default(self, name):
        """Runs one application alone, as the times need it."""
        begin = time.monotonic()
        code, output = run([str(self.apps / name), "--time"])
        whole_ms = (time.monotonic() - begin) * 1e3
        self.note(f"{name} --time (exit code {code}, {whole_ms:.0f} ms)", output)
        timed = re.search(r"kernel_ms ([0-9.]+)", output)
        if code != 0 or not timed:
            self.fail(f"{name} --time (exit code {code})", output)
            return False
        kernel_ms = float(timed.group(1))
        low, high = KERNEL_MS_TARGET
        self.add(f"apps.{name}.kernel_ms", kernel_ms, "ms", f"{low:g} to {high:g}", f"{COMMAND} {name}")
        self.add(f"apps.{name}.whole_program_ms", round(whole_ms, 1), "ms", f"<= {WHOLE_PROGRAM_MS_TARGET:.0f}",
                 f"{COMMAND} {name}")
        missed = [] if low <= kernel_ms <= high else ["kernel_ms"]
        missed += ["whole_program_ms"] if whole_ms > WHOLE_PROGRAM_MS_TARGET else []
        print(f"{name:22} {kernel_ms:10.4f} ms kernel {whole_ms:8.0f} ms program"
              f"{'  MISSED ' + ' '.join(missed) if missed else ''}", flush=True)
        return True

    def run_small(self, what, prefix, names):
        """Runs the applications at --small beside one another; returns those that passed."""
        def run_one(name):
            return run(prefix + [str(self.apps / name), "--small"])

        passed = []
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for name, (code, output) in zip(names, pool.map(run_one, names)):
                self.note(f"{name} --small, {what} (exit code {code})", output)
                if code == 0 and f"{name}: PASS" in output:
                    passed.append(name)
                else:
                    self.fail(f"{name} --small, {what} (exit code {code})", output)
        print(f"{what}: {len(passed)} of {len(self.names)}", flush=True)
        return passed

    def sanitize(self, names):
        sanitizer = find_tool(self.cuda, "compute-sanitizer")
        if not sanitizer:
            self.fail("sanitize", f"no compute-sanitizer in {self.cuda}/bin or PATH; install it or drop --sanitize")
            return
        for tool in ("memcheck", "racecheck"):
            prefix = [sanitizer, "--tool", tool, "--error-exitcode", "99"]
            self.add_count(f"apps.{tool}_clean", self.run_small(tool, prefix, names))

    def load_cubins(self):
        code, output = run([self.options.loader, self.options.cubins])
        self.note("cubins", output)
        counted = re.search(r"(\d+) of (\d+) cubins loaded, (\d+) kernels", output)
        if code != 0 or not counted:
            self.fail(f"loading the cubins (exit code {code})", output)
        if counted:
            self.add("apps.cubins_loaded", int(counted.group(1)), "cubins", f">= {counted.group(2)}", command=CUBINS)
            self.add("apps.cubin_kernels_loaded", int(counted.group(3)), "kernels", "", command=CUBINS)
            print(counted.group(0), flush=True)

    def update_json(self):
        """Replaces what was measured in the file and keeps the rest, as the other benchmarks do."""
        gpu = first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], r".+")
        nvcc = first_line([find_tool(self.cuda, "nvcc") or "nvcc", "--version"], r"V[0-9.]+")
        environment = f"{gpu} (GPU, driver); nvcc {nvcc}, -O3 -arch=sm_90; {os.cpu_count()} CPUs"
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        path = pathlib.Path(self.options.json)
        entries = {entry["metric"]: entry for entry in json.loads(path.read_text())} if path.exists() else {}
        for result in self.results:
            entries[result["metric"]] = result | {"environment": environment, "date": date}
        report = [entry for _, entry in sorted(entries.items())]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")

    def run_all(self):
        built = self.build()
        passed = [name for name in built if self.run_default(name)]
        self.add_count("apps.passed", passed)
        self.add_count("apps.small_passed", self.run_small("plain", [], built))
        if self.options.sanitize:
            self.sanitize(built)
        if self.options.cubins:
            self.load_cubins()
        if self.options.json:
            self.update_json()
        print(f"{len(passed)} of {len(self.names)} applications passed at their default size; "
              f"{len(self.failures)} failures", flush=True)
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="where to write what was measured")
    parser.add_argument("--log", help="where to write every program's output")
    parser.add_argument("--build", default=str(ROOT / "build/apps-gpu"), help="where to build (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="builds and --small runs at a time")
    parser.add_argument("--sanitize", action="store_true", help="also memcheck and racecheck")
    parser.add_argument("--cubins", help="directory of cubins to load")
    parser.add_argument("--loader", help="the built load_cubins")
    parser.add_argument("names", nargs="*", metavar="NAME", help="applications (default: all)")
    options = parser.parse_args()
    known = read_names()
    unknown = [name for name in options.names if name not in known]
    if unknown or bool(options.cubins) != bool(options.loader) or options.jobs < 1:
        parser.error(f"unknown application {unknown[0]}; apps.tsv has: {' '.join(known)}" if unknown else
                     "--cubins and --loader go together, and --jobs wants at least 1")
    return Bench(options, options.names or known).run_all()


if __name__ == "__main__":
    sys.exit(main())
