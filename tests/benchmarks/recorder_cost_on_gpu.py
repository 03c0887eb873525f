#!/usr/bin/env python3
"""Measures what the driver recorder costs an application, on this machine's GPU.

  recorder_cost_on_gpu.py --reprise FILE --apps DIR [--work DIR] [--pairs N] [--json FILE] [--only STAGE[,STAGE]]

DIR holds programs that record_on_gpu.py (or build.sh) built from apps.tsv and apps-gpu.tsv. Each pair runs a program
natively and under `reprise record` with a filter that no kernel matches, in turns; times are the program's own, from its
start to its end, without the recorder's. Copying out is measured on one recording of a large unit and compared with plain
copies into pinned memory. --json updates a file like docs/benchmarks/h200-record.json. Needs a GPU and its driver.
"""

import argparse
import ctypes
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

import gpu_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = "python3 tests/benchmarks/recorder_cost_on_gpu.py --reprise build/release/bin/reprise --apps build/record-gpu/apps"
# Seconds each, so that what every process pays once, which has its own figure, does not hide what a launch costs. The last
# makes 230,000 launches and 110,000 cudaMallocAsync of a few hundred bytes per second.
WHOLE_PROGRAMS = [["nbody", "--iterations", "300"], ["lattice_qcd", "--iterations", "1000"],
                  ["many_launches", "--size", "500000"]]
TIMER = "import subprocess,sys,time\nb=time.monotonic()\nc=subprocess.run(sys.argv[2:]).returncode\n" \
        "open(sys.argv[1],'w').write(str(time.monotonic()-b))\nsys.exit(c)\n"


class Cost:
    def __init__(self, options):
        self.options = options
        self.reprise = str(pathlib.Path(options.reprise).resolve())
        self.apps = pathlib.Path(options.apps).resolve()
        self.work = pathlib.Path(options.work).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.entries = []

    def add(self, metric, value, unit, target):
        print(f"{metric:28} {value:.4g} {unit}  (target {target})", flush=True)
        self.entries.append({"metric": metric, "value": round(value, 4), "unit": unit, "target": target})

    def run(self, program, recorded):
        """Returns (seconds of the program alone, its output)."""
        seconds = self.work / "seconds"
        command = [sys.executable, "-c", TIMER, str(seconds)] + program
        if recorded:
            command = [self.reprise, "record", "--device", "cuda:0", "--store", str(self.work / "none"), "--kernel",
                       "no_kernel_has_this_name", "--"] + command
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
        return float(seconds.read_text()), done.stdout

    def pairs(self, program, read, count=None):
        """Medians of what `read` takes from native and recorded runs, in turns; the order changes from pair to pair."""
        native, recorded = [], []
        for pair in range(count or self.options.pairs):
            for turn in range(2):
                under = (turn + pair) % 2 == 1
                (recorded if under else native).append(read(*self.run(program, under)))
        self.ratio = statistics.median(b / a for a, b in zip(native, recorded))
        self.spread = [round(b / a, 3) for a, b in zip(native, recorded)]
        return statistics.median(native), statistics.median(recorded)

    def launch_overhead(self):
        for app, name, metric, target in [("many_launches", "launch_us", "record.launch_overhead_us", "<= 2"),
                                          ("many_launches", "alloc_free_us", "record.alloc_free_overhead_us", ""),
                                          ("many_graphs", "graph_launch_us", "record.graph_launch_overhead_us", "<= 2")]:
            if not (self.apps / app).exists():
                continue
            figure = re.compile(name + r" ([0-9.]+)")
            native, recorded = self.pairs([str(self.apps / app), "--time"],
                                          lambda _, out, figure=figure: float(figure.search(out).group(1)))
            print(f"{name}: native {native:.3f}, recorded {recorded:.3f}", flush=True)
            self.add(metric, recorded - native, "us", target)

    def slowdown(self):
        native, recorded = self.pairs([str(self.apps / "nbody"), "--small"], lambda seconds, _: seconds, 3 * self.options.pairs)
        self.add("record.process_overhead_ms", 1e3 * (recorded - native), "ms", "")
        worst = 0
        for name, *arguments in WHOLE_PROGRAMS:
            native, recorded = self.pairs([str(self.apps / name)] + arguments, lambda seconds, _: seconds)
            print(f"{name}: native {native:.3f} s, recorded {recorded:.3f} s; pairs {self.spread}", flush=True)
            self.add(f"record.app_slowdown.{name}", self.ratio, "ratio", "<= 1.02")
            worst = max(worst, self.ratio)
        self.add("record.app_slowdown", worst, "ratio", "<= 1.02")

    def copy_out(self):
        """The median of three recordings of 1 GiB; and one of 8 GiB."""
        pinned = pinned_bandwidth()
        recorded = statistics.median(self.copy_once(1 << 27) for _ in range(3))
        large = self.copy_once(1 << 30)
        print(f"copy out {recorded:.1f} GB/s, of 8 GiB {large:.1f} GB/s, into pinned memory {pinned:.1f} GB/s", flush=True)
        self.add("record.copy_out_gb_s", recorded, "GB/s", "")
        self.add("record.copy_out_ratio", recorded / pinned, "ratio", ">= 0.8")
        self.add("record.copy_out_8gib_ratio", large / pinned, "ratio", ">= 0.8")

    def copy_once(self, elements):
        report = self.work / "report.json"
        shutil.rmtree(self.work / "copied", ignore_errors=True)
        subprocess.run([self.reprise, "record", "--device", "cuda:0", "--store", str(self.work / "copied"), "--report",
                        str(report), "--", str(self.apps / "copy"), "--size", str(elements), "--iterations", "1"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        capture = json.loads(report.read_text())["captures"][0]
        shutil.rmtree(self.work / "copied", ignore_errors=True)
        return capture["image_bytes"] / capture["copy_ms"] / 1e6

    def trim(self):
        """What is left of 60 GiB of device memory when a kernel touches half a GiB of it."""
        report, store = self.work / "report.json", self.work / "trimmed"
        shutil.rmtree(store, ignore_errors=True)
        begin = time.monotonic()
        done = subprocess.run([self.reprise, "record", "--device", "cuda:0", "--store", str(store), "--report", str(report),
                               "--kernel", "TouchPartKernel", "--", str(self.apps / "large_live"), "--iterations", "1"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
        seconds = time.monotonic() - begin
        units = json.loads(subprocess.run([self.reprise, "units", "--store", str(store), "--json"], stdout=subprocess.PIPE,
                                          encoding="utf-8").stdout)["units"]
        if not units:
            print(f"nothing was recorded of 60 GiB: {done.stderr.strip()[-300:]}", flush=True)
            return
        capture = json.loads(report.read_text())["captures"][0]
        live, kept = capture["image_bytes"], units[0]["memory_bytes"]
        print(f"{live} live bytes, {kept} in the unit; copied at {live / capture['copy_ms'] / 1e6:.1f} GB/s; "
              f"the whole recording took {seconds:.1f} s", flush=True)
        self.add("trim.ratio", kept / live, "ratio", "")
        self.add("trim.recording_s", seconds, "s", "")
        shutil.rmtree(store, ignore_errors=True)

    def write(self):
        gpu_report.update(self.options.json, self.entries, command=COMMAND,
                          environment=f"{gpu_report.gpu_and_driver()}; {os.cpu_count()} CPUs; {self.options.pairs} pairs, "
                          f"medians (of slowdowns: of the pairs' ratios)")


def pinned_bandwidth():
    """GB/s of plain copies from the device into pinned memory."""
    cuda = ctypes.CDLL("libcuda.so.1")
    size, rounds = 256 << 20, 8
    context, device, host = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
    steps = [lambda: cuda.cuInit(0), lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
             lambda: cuda.cuCtxSetCurrent(context), lambda: cuda.cuMemAlloc_v2(ctypes.byref(device), ctypes.c_size_t(size)),
             lambda: cuda.cuMemHostAlloc(ctypes.byref(host), ctypes.c_size_t(size), 0)]
    for step in steps:
        if step() != 0:
            sys.exit("the CUDA driver cannot be used")
    cuda.cuMemcpyDtoH_v2(host, device, ctypes.c_size_t(size))
    begin = time.monotonic()
    for _ in range(rounds):
        cuda.cuMemcpyDtoH_v2(host, device, ctypes.c_size_t(size))
    return rounds * size / (time.monotonic() - begin) / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reprise", required=True, help="the program to test")
    parser.add_argument("--apps", required=True, help="where the built programs are")
    parser.add_argument("--work", default=str(ROOT / "build/recorder-cost"), help="where to work (default %(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs per figure")
    parser.add_argument("--json", help="where to write what was measured")
    parser.add_argument("--only", default="launch_overhead,slowdown,copy_out,trim", help="stages (default %(default)s)")
    options = parser.parse_args()
    cost = Cost(options)
    stages = {"launch_overhead": cost.launch_overhead, "slowdown": cost.slowdown, "copy_out": cost.copy_out, "trim": cost.trim}
    names = options.only.split(",")
    unknown = [name for name in names if name not in stages]
    if unknown:
        parser.error(f"unknown stage {unknown[0]}; there are: {' '.join(stages)}")
    if not (cost.apps / "large_live").exists() and "trim" in names:
        names.remove("trim")
    for name in names:
        stages[name]()
        if cost.options.json:
            cost.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
