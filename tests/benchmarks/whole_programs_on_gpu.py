#!/usr/bin/env python3
"""What replay saves and foretells for whole programs, on this machine's GPU: applications of tests/apps at their default size.

  whole_programs_on_gpu.py --reprise FILE --replay-benchmark FILE [--work DIR] [--json FILE] [--log FILE]
                           [--only STAGE[,STAGE]] [--kernels N] [--budget TIME] [NAME...]

Stages:
  record   builds every application by nvcc through `reprise cc` and records its kernels, once each
  rebuild  what a tuner without replay pays for a candidate: the application built again by nvcc, and run
  replay   what it costs with replay: the longest kernel of each application, by replay_benchmark
  apply    tunes kernels (pipelines, code generation and launches; the source stays) until N gave something faster, puts each
           winner into its application, and compares the gain there with the interval that replay foretold

--json updates a file like docs/benchmarks/h200-replay.json. Needs a CUDA toolkit and a GPU.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import sys
import time

import gpu_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
APPS = ROOT / "tests/apps"
COMMAND = "python3 tests/benchmarks/whole_programs_on_gpu.py --reprise build/release/bin/reprise " \
          "--replay-benchmark build/release/tests/bin/replay_benchmark --json docs/benchmarks/h200-replay.json"
STAGES = ["record", "rebuild", "replay", "apply"]
# Builds at a time when their time matters; the others of this machine's processors stay free.
BUILDS_AT_ONCE = 4
# Milliseconds that an application's kernel shall take in all when a winner is in it: long enough to be measured well.
KERNEL_MS_IN_PROGRAM = 400
TIMEOUT_S = 240


class WholePrograms:
    def __init__(self, options, apps):
        self.options = options
        self.apps = apps  # (name, regular expression of kernels)
        self.work = pathlib.Path(options.work).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.environment = dict(os.environ, REPRISE_HOME=str(self.work / "home"), REPRISE_LOG="warning")
        self.log = open(options.log, "w", encoding="utf-8") if options.log else None
        self.entries = []

    def call(self, command):
        result = gpu_report.run(command, self.environment, TIMEOUT_S)
        if self.log:
            self.log.write(f"=== {' '.join(command)} (exit code {result[0]}, {result[3]:.1f} s)\n{result[1]}{result[2]}\n")
            self.log.flush()
        return result

    def add(self, metric, value, unit, target=""):
        self.entries.append({"metric": metric, "value": round(value, 4), "unit": unit, "target": target})

    def build_command(self, names, out, launcher):
        command = ["bash", str(APPS / "build.sh"), "--compiler", "nvcc", "--cudart", "static", "--out", str(out)]
        if launcher:
            command += ["--launcher", f"{self.options.reprise} cc", "--jobs", str(os.cpu_count())]
        return command + names

    def record(self):
        code, _, err, seconds = self.call(self.build_command([name for name, _ in self.apps], self.work / "apps", True))
        print(f"built in {seconds:.0f} s, exit code {code} {err.strip()[-200:] if code else ''}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            list(pool.map(self.record_one, self.apps))

    def record_one(self, app):
        name, kernels = app
        self.call([self.options.reprise, "record", "--device", "cuda:0", "--store", str(self.work / "stores" / name),
                   "--kernel", kernels, "--count", "1", "--", str(self.work / "apps" / name)])

    def longest(self, name):
        """Milliseconds and id of the recorded launch that took longest; nothing where none was recorded."""
        code, out, _, _ = self.call([self.options.reprise, "units", "--store", str(self.work / "stores" / name), "--json"])
        units = json.loads(out)["units"] if code == 0 else []
        return max(((unit["duration_ms"], unit["id"]) for unit in units if "duration_ms" in unit), default=None)

    def rebuild(self):
        with concurrent.futures.ThreadPoolExecutor(BUILDS_AT_ONCE) as pool:
            built = list(pool.map(lambda app: self.call(self.build_command([app[0]], self.work / "rebuilt", False)), self.apps))
        times = []
        for (name, _), build in zip(self.apps, built):
            code, _, _, seconds = self.call([str(self.work / "rebuilt" / name)])
            if build[0] != 0 or code != 0:
                print(f"{name}: build exit code {build[0]}, run exit code {code}", flush=True)
                continue
            times.append(1e3 * (build[3] + seconds))
            self.add(f"app.rebuild_rerun_ms.{name}", times[-1], "ms")
        self.add("app.rebuild_rerun_ms", statistics.median(times), "ms")
        print(f"rebuild and rerun: median {statistics.median(times):.0f} ms, {min(times):.0f} to {max(times):.0f} ms, "
              f"{len(times)} applications", flush=True)

    def replay(self):
        source, over = [], []
        for name, _ in self.apps:
            unit = self.longest(name)
            if unit is None:
                print(f"{name}: no unit", flush=True)
                continue
            report = self.work / "replay.json"
            report.unlink(missing_ok=True)
            self.call([self.options.replay_benchmark, "--reprise", self.options.reprise, "--store",
                       str(self.work / "stores" / name), "--units", unit[1], "--variants", "5", "--report", str(report)])
            seen = {entry["metric"]: entry["value"] for entry in json.loads(report.read_text())} if report.exists() else {}
            p50, ratio = seen.get("cuda.source_variant_p50_ms"), seen.get("cuda.clang_over_nvcc.median")
            print(f"{name:22} kernel {unit[0]:.3g} ms, source variant {p50} ms, Clang over nvcc {ratio}", flush=True)
            if p50 is not None:
                source.append(p50)
                self.add(f"cuda.source_variant_p50_ms.{name}", p50, "ms")
            if ratio is not None:
                over.append(ratio)
                self.add(f"baseline.clang_over_nvcc.{name}", ratio, "ratio")
        self.add("cuda.source_variant_p50_ms.median_of_apps", statistics.median(source), "ms")
        self.add("baseline.clang_over_nvcc.median", statistics.median(over), "ratio")
        self.add("baseline.clang_over_nvcc.min", min(over), "ratio")
        self.add("baseline.clang_over_nvcc.max", max(over), "ratio")

    def apply(self):
        begin, compared = time.monotonic(), []
        for name, _ in self.apps:
            if len(compared) >= self.options.kernels or time.monotonic() - begin > self.options.apply_seconds:
                break
            unit = self.longest(name)
            if unit is not None:
                compared += self.apply_one(name, *unit)
        if not compared:
            return
        within = sum(entry["within"] for entry in compared)
        wrong = sum(entry["wrong_sign"] for entry in compared)
        print(f"{within} of {len(compared)} gains within what replay foretold, {wrong} of the wrong sign", flush=True)
        self.add("apply.kernels", len(compared), "kernels", ">= 10")
        self.add("apply.prediction_within_ci_share", within / len(compared), "share", ">= 0.9")
        self.add("apply.wrong_signs", wrong, "kernels", "0")

    def apply_one(self, name, kernel_ms, unit):
        results = self.work / "results" / name
        code, _, err, _ = self.call([self.options.reprise, "optimize", unit, "--store", str(self.work / "stores" / name),
                                     "--device", "cuda:0", "--keep-source", "--budget", self.options.budget, "--output",
                                     str(results)])
        if code != 0:
            print(f"{name:22} {'nothing better' if code == 3 else err.strip()[-200:]}", flush=True)
            return []
        iterations = int(min(max(KERNEL_MS_IN_PROGRAM / max(kernel_ms, 1e-3), 10), 4000))
        code, out, err, _ = self.call([self.options.reprise, "apply", str(sorted(results.iterdir())[-1]), "--compare",
                                       str(self.options.pairs), "--json", "--", str(self.work / "apps" / name),
                                       "--iterations", str(iterations)])
        try:
            seen = json.loads(out)
        except ValueError:
            print(f"{name:22} apply: exit code {code}: {err.strip()[-300:]}", flush=True)
            return []
        if seen["launches_declined"] or not seen["launches_applied"]:
            print(f"{name:22} {seen['launches_applied']} applied, declined {seen['declined']}", flush=True)
            return []
        low, high = seen["expected_ratio"]
        ratio = seen["kernel_ratio"]
        entry = {"within": low <= ratio <= high, "wrong_sign": ratio < 1}
        saved = statistics.median(seen["seconds_without"]) - statistics.median(seen["seconds_with"])
        foretold = statistics.median(seen["kernel_ms_without"]) * (1 - 1 / seen["replay_ratio"]) / 1e3
        print(f"{name:22} replay {seen['replay_ratio']:.3f} ({low:.3f} to {high:.3f}), in the program {ratio:.3f} "
              f"{seen.get('kernel_ratio_ci95')}; seconds saved {saved:.3f}, foretold {foretold:.3f}; output "
              f"{'same' if seen['same_output'] else 'differs'}{'' if entry['within'] else '  OUTSIDE'}", flush=True)
        self.add(f"apply.kernel_ratio.{name}", ratio, "ratio", f"{low:.4f} to {high:.4f}")
        return [entry]

    def write(self):
        gpu_report.update(self.options.json, self.entries, command=COMMAND,
                          environment=f"{gpu_report.gpu_and_driver()}; {os.cpu_count()} CPUs; nvcc -O3")


def read_apps():
    rows = [line.split("\t") for line in (APPS / "apps.tsv").read_text().splitlines()
            if line.strip() and not line.startswith("#")]
    return [(row[0], row[4]) for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reprise", required=True, help="the program to test")
    parser.add_argument("--replay-benchmark", required=True, help="the program replay_benchmark")
    parser.add_argument("--work", default=str(ROOT / "build/whole-programs"), help="where to work (default %(default)s)")
    parser.add_argument("--json", help="where to write what was measured")
    parser.add_argument("--log", help="where to write every program's output")
    parser.add_argument("--only", default=",".join(STAGES), help="stages (default %(default)s)")
    parser.add_argument("--kernels", type=int, default=12, help="winners to apply (default %(default)s)")
    parser.add_argument("--budget", default="5s", help="of each search (default %(default)s)")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of runs with and without a winner (default %(default)s)")
    parser.add_argument("--apply-seconds", type=float, default=1e9, help="begin no other search after this long")
    parser.add_argument("names", nargs="*", metavar="NAME", help="applications (default: all)")
    options = parser.parse_args()
    options.reprise = str(pathlib.Path(options.reprise).resolve())
    options.replay_benchmark = str(pathlib.Path(options.replay_benchmark).resolve())
    apps = [app for app in read_apps() if not options.names or app[0] in options.names]
    stages = options.only.split(",")
    unknown = [stage for stage in stages if stage not in STAGES]
    if unknown:
        parser.error(f"unknown stage {unknown[0]}; there are: {' '.join(STAGES)}")
    programs = WholePrograms(options, apps)
    for stage in stages:
        getattr(programs, stage)()
        if options.json:
            programs.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
