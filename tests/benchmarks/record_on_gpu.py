#!/usr/bin/env python3
"""Records the applications of tests/apps on this machine's GPU and replays every unit there.

  record_on_gpu.py --reprise FILE [--work DIR] [--json FILE] [--log FILE] [--jobs N] [--cudart static|shared]
                   [--built DIR] [--table FILE] [--frontend clang|nvrtc|both] [NAME...]

Each application is built by nvcc through `reprise cc` (or taken from DIR with --built, with its build registry in
DIR/home), run natively, and run under the recorder: output and exit code must be the same. Every unit is then replayed
from the application's own machine code and from its unmodified IR (or source, with --frontend nvrtc, or both), and all must
give the recorded epilogue. --json keeps the shares in a file like docs/benchmarks/h200-record.json. Exits 0 when every application records and every unit replays.
Needs a CUDA toolkit and a GPU.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import sys

import gpu_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
APPS = ROOT / "tests/apps"
# Takes all of the device's memory, so that others beside it would fail.
ALONE = ["exhausted"]


def read_apps(table):
    """The columns behind the description, where there are any, say what the recorder is to do (record, machine-code: a unit
    without source, source: one without IR, that NVIDIA's compiler alone builds, or refuse:WORD: no unit, and WORD in what it says) and what it is told (- for nothing)."""
    apps = []
    for line in pathlib.Path(table).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, _, small, kernels, _, *rest = line.split("\t")
            expected, told = rest or ["record", "-"]
            apps.append({"name": name, "small": small.split(), "kernels": kernels, "expected": expected,
                         "told": [] if told == "-" else told.split()})
    return apps


def without_what_varies(text):
    """Programs may print how long something took, and sums of atomics differ from run to run in their last bits."""
    return re.sub(r"[0-9.]+ ?(ms|us|s|GB/s|GFLOP/s)\b|max error [^,)]+", "VARIES", text)


class Recording:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.programs = pathlib.Path(options.built).resolve() if options.built else self.work / "apps"
        home = self.programs / "home" if options.built else self.work / "home"
        self.environment = dict(os.environ, REPRISE_HOME=str(home), REPRISE_LOG="warning")
        self.log = open(options.log, "w", encoding="utf-8") if options.log else None

    def note(self, title, *texts):
        if self.log:
            self.log.write("=== " + title + "\n" + "\n".join(text.rstrip() for text in texts if text.strip()) + "\n")
            self.log.flush()

    def build(self, names):
        command = ["bash", str(APPS / "build.sh"), "--compiler", "nvcc", "--cudart", self.options.cudart, "--out",
                   str(self.programs), "--launcher", f"{self.options.reprise} cc", "--jobs", str(self.options.jobs),
                   "--table", str(self.options.table)]
        code, out, err, seconds = gpu_report.run(command + names, self.environment, 1800)
        self.note(f"build (exit code {code}, {seconds:.0f} s)", out, err)
        print(f"built in {seconds:.0f} s, exit code {code}", flush=True)

    def record(self, app):
        program = [str(self.programs / app["name"])] + app["small"]
        native = gpu_report.run(program)
        # With a problem, record fails where the application did not.
        fails = 1 if app["expected"].startswith("refuse") else 0
        store = self.work / "units" / app["name"]
        recorded = gpu_report.run([self.options.reprise, "record", "--device", "cuda:0", "--store", str(store), "--kernel",
                                   app["kernels"], "--count", "2"] + app["told"] + ["--"] + program, self.environment)
        self.note(f"record {app['name']} (exit code {recorded[0]}, native {native[0]})", recorded[1], recorded[2])
        same = recorded[0] in (native[0], native[0] or fails) and without_what_varies(native[1]) == without_what_varies(recorded[1])
        code, out, _, _ = gpu_report.run([self.options.reprise, "units", "--store", str(store), "--json"], self.environment)
        try:
            units = [unit["id"] for unit in json.loads(out)["units"]]
        except (ValueError, KeyError):
            units = []
        problem = "" if same else f"exit {recorded[0]}, native {native[0]}: {recorded[2].strip()[-160:]}"
        return units, problem, recorded[2]

    def rebuilds(self, app):
        """What the unit's kernel is rebuilt by, as options of replay."""
        by_clang, by_nvrtc = ["--pipeline", "default<O3>"], ["--frontend", "nvrtc"]
        if app["expected"] == "machine-code":
            return [[]]
        if app["expected"] == "source":
            return [by_nvrtc]
        return {"clang": [by_clang], "nvrtc": [by_nvrtc], "both": [by_clang, by_nvrtc]}[self.options.frontend]

    def replay(self, app, unit, rebuilt):
        second = self.options.frontend == "both" and app["expected"] != "source" and "nvrtc" in rebuilt
        code, out, err, _ = gpu_report.run([self.options.reprise, "replay", unit, "--device", "cuda:0", "--store",
                                            str(self.work / "units" / app["name"]), "--iterations", "4", "--json"] + rebuilt,
                                           self.environment)
        self.note(f"replay {app['name']} {unit} (exit code {code})", out, err)
        try:
            report = json.loads(out)
        except ValueError:
            return {"second": second, "own": "failed", "ir": "failed", "problem": err.strip()[-200:]}
        own = "exact" if report["matches_epilogue"] else report["verdict"]
        ir = report.get("outcome", "OK" if not rebuilt else "none")
        return {"second": second, "own": own, "ir": ir, "problem": report.get("diagnostics", "")[-200:] if ir != "OK" else ""}

    def run_one(self, app):
        units, problem, messages = self.record(app)
        replays = [self.replay(app, unit, rebuilt) for unit in units for rebuilt in self.rebuilds(app)]
        kind, _, word = app["expected"].partition(":")
        # A program that finds the machine without what the kernel needs leaves it out.
        absent = kind == "refuse" and not problem and "no kernel matches" in messages
        if kind == "refuse" and not problem and not absent:
            problem = f"recorded, expected to be refused with '{word}'" if units or word not in messages else ""
        elif not units and not problem:
            problem = "nothing recorded"
        elif kind == "machine-code" and not problem and "cannot be remixed" not in messages:
            problem = "recorded without saying that it cannot be remixed"
        elif kind == "source" and not problem and "passes cannot be tuned" not in messages:
            problem = "recorded without saying that passes cannot be tuned"
        return {"app": app["name"], "refused": kind == "refuse", "absent": absent, "units": units, "problem": problem, "messages": messages, "replays": replays}

    def run_all(self, apps):
        if not self.options.built:
            self.build([app["name"] for app in apps])
        results = []
        with concurrent.futures.ThreadPoolExecutor(self.options.at_once) as pool:
            for result in pool.map(self.run_one, [app for app in apps if app["name"] not in ALONE]):
                results.append(result)
                self.show(result)
        for app in apps:
            if app["name"] in ALONE:
                results.append(self.run_one(app))
                self.show(results[-1])
        return self.summarize(results)

    def show(self, result):
        if result["absent"]:
            print(f"{result['app']:22} left its kernel out: this machine lacks what it needs", flush=True)
            return
        own = ",".join(replay["own"] for replay in result["replays"]) or "-"
        ir = ",".join(replay["ir"] for replay in result["replays"]) or "-"
        print(f"{result['app']:22} {len(result['units'])} units, own code {own}, IR {ir}"
              f"{'  ' + result['problem'] if result['problem'] else ''}", flush=True)
        if not result["units"]:
            print("    " + result["messages"].strip()[-400:].replace("\n", "\n    "), flush=True)
        for replay in result["replays"]:
            if replay["problem"]:
                print("    " + replay["problem"].replace("\n", "\n    "), flush=True)

    def summarize(self, results):
        results = [r for r in results if not r["absent"]]
        recorded = [r for r in results if (r["units"] or r["refused"]) and not r["problem"]]
        replays = [replay for r in results for replay in r["replays"] if not replay["second"]]
        own = [replay for replay in replays if replay["own"] in ("exact", "within tolerance")]
        exact = [replay for replay in replays if replay["own"] == "exact"]
        ir = [replay for replay in replays if replay["ir"] == "OK"]
        second = [replay for r in results for replay in r["replays"] if replay["second"]]
        print(f"{len(recorded)} of {len(results)} applications recorded; {len(replays)} units: {len(own)} replay from "
              f"their own code ({len(exact)} bit for bit), {len(ir)} rebuilt", flush=True)
        if second:
            print(f"rebuilt by NVRTC too: {sum(replay['ir'] == 'OK' for replay in second)} of {len(second)}", flush=True)
        if self.options.json:
            self.write_json(results, recorded, replays, own, ir, second)
        return 0 if len(recorded) == len(results) and len(own) == len(ir) == len(replays) else 1

    def compiler(self):
        return "Clang" if self.options.built else f"nvcc -cudart {self.options.cudart}"

    def command(self):
        words = ["python3 tests/benchmarks/record_on_gpu.py --reprise build/release/bin/reprise"]
        if self.options.built:
            words.append("--built build/clang-apps")
        if pathlib.Path(self.options.table) != APPS / "apps.tsv":
            words.append(f"--table tests/apps/{pathlib.Path(self.options.table).name}")
        if self.options.metric != "cuda":
            words.append(f"--metric {self.options.metric}")
        if self.options.frontend != "clang":
            words.append(f"--frontend {self.options.frontend}")
        return " ".join(words + ["--json docs/benchmarks/h200-record.json"])

    def write_json(self, results, recorded, replays, own, ir, second):
        both = [replay for replay in replays if replay in own and replay in ir]
        measured = [
            {"metric": f"{self.options.metric}.apps_recorded_share", "value": round(len(recorded) / max(1, len(results)), 4), "unit": "share",
             "target": "1.0"},
            {"metric": f"{self.options.metric}.units_exact_share", "value": round(len(both) / max(1, len(replays)), 4), "unit": "share",
             "target": "1.0"},
            {"metric": f"{self.options.metric}.units_replayed", "value": len(replays), "unit": "units", "target": ""}]
        if second:
            measured.append({"metric": f"{self.options.metric}.nvrtc_units_share", "unit": "share", "target": "",
                             "value": round(sum(replay["ir"] == "OK" for replay in second) / len(second), 4)})
        gpu_report.update(self.options.json, measured, command=self.command(),
                          environment=f"{gpu_report.gpu_and_driver()}; {self.compiler()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reprise", required=True, help="the program to test")
    parser.add_argument("--work", default=str(ROOT / "build/record-gpu"), help="where to work (default %(default)s)")
    parser.add_argument("--json", help="where to write the shares")
    parser.add_argument("--log", help="where to write every program's output")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="builds at a time")
    parser.add_argument("--at-once", type=int, default=4, help="applications recorded at a time")
    parser.add_argument("--cudart", choices=["static", "shared"], default="static", help="CUDA runtime of the programs")
    parser.add_argument("--built", help="programs that were built elsewhere, with their registry in home/")
    parser.add_argument("--frontend", choices=["clang", "nvrtc", "both"], default="clang", help="what rebuilds units (default %(default)s)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="applications (default: all)")
    parser.add_argument("--table", default=str(APPS / "apps.tsv"), help="which applications (default %(default)s)")
    parser.add_argument("--metric", default="cuda", help="beginning of the metrics' names")
    options = parser.parse_args()
    options.reprise = str(pathlib.Path(options.reprise).resolve())
    apps = read_apps(options.table)
    unknown = [name for name in options.names if name not in [app["name"] for app in apps]]
    if unknown:
        parser.error(f"unknown application {unknown[0]}; the table has: {' '.join(app['name'] for app in apps)}")
    return Recording(options).run_all([app for app in apps if not options.names or app["name"] in options.names])


if __name__ == "__main__":
    sys.exit(main())
