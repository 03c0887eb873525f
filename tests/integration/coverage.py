#!/usr/bin/env python3
"""Records every application of tests/apps on the cpu device and replays every unit.

  coverage.py --build-dir DIR [--work DIR] [--compiler clang|nvcc] [--markdown FILE] [NAME...]

Builds each application through `reprise cc`, runs it natively under the recorder at its small size, checks that its own
result and output are those of a run that records nothing and that every chosen kernel gave units, and replays each unit. Exits 0
when every application records and every unit replays. With --markdown, writes the table of docs/coverage.md.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read_apps():
    apps = []
    for line in (ROOT / "tests/apps/apps.tsv").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, sources, flags, small, kernels, description = line.split("\t")
            apps.append({"name": name, "small": small.split(), "kernels": kernels, "description": description})
    return apps


def run(command, **kwargs):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, **kwargs)


def own_output(run):
    """What the application printed, without what `reprise record` adds; errors of sums depend on the order of atomics."""
    error = [line for line in run.stderr.splitlines() if not re.match(r"reprise[:\[]| +\d+ x ", line)]
    return re.sub("max error [^,]*", "max error", run.stdout), error


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else ""


class Coverage:
    def __init__(self, build_dir, work, compiler):
        self.reprise = str(pathlib.Path(build_dir) / "bin/reprise")
        self.work = pathlib.Path(work)
        self.compiler = compiler
        self.environment = dict(os.environ, REPRISE_HOME=str(self.work / "home"), REPRISE_LOG="warning")

    def build(self, app):
        script = ["bash", str(ROOT / "tests/apps/build.sh"), "--compiler", self.compiler, "--out",
                  str(self.work / "apps"), "--launcher", f"{self.reprise} cc", app["name"]]
        built = run(script, env=self.environment)
        if built.returncode != 0:
            return f"does not build: {last_line(built.stderr + built.stdout)}"
        return last_line(built.stderr) if "reprise cc" in built.stderr else ""

    def record(self, app):
        store = self.work / "units" / app["name"]
        program = [str(self.work / "apps" / app["name"])] + app["small"]
        plain = run([self.reprise, "record", "--store", str(store), "--kernel", "none of them", "--"] + program,
                    env=self.environment)
        # The last occurrence of an in-place kernel is as good as the first; two instances show that data matters.
        report = self.work / "report.json"
        recorded = run([self.reprise, "record", "--store", str(store), "--kernel", app["kernels"], "--count", "2",
                        "--report", str(report), "--"] + program, env=self.environment)
        if recorded.returncode != 0:
            return None, f"exit {recorded.returncode}: {last_line(recorded.stderr) or last_line(recorded.stdout)}"
        if f"{app['name']}: PASS" not in recorded.stdout:
            return None, f"the application failed its own check: {last_line(recorded.stdout)}"
        if own_output(plain) != own_output(recorded):
            return None, f"recording changes the output: {own_output(plain)} without, {own_output(recorded)} with"
        matched = [kernel for kernel in json.loads(report.read_text())["kernels"] if kernel["matched"]]
        for kernel in matched:
            if kernel["problem"] or not kernel["units"]:
                return None, f"{kernel['name']} gave no unit: {kernel['problem']}"
        listing = run([self.reprise, "units", "--json", "--store", str(store)], env=self.environment)
        if listing.returncode != 0:
            return None, last_line(listing.stderr)
        return json.loads(listing.stdout)["units"], ""

    def replay(self, app, unit):
        store = self.work / "units" / app["name"]
        replayed = run([self.reprise, "replay", unit, "--json", "--iterations", "3", "--store", str(store)],
                       env=self.environment)
        if replayed.returncode != 0:
            return None, last_line(replayed.stderr)
        return json.loads(replayed.stdout), ""

    def one(self, app):
        """Rows (kernel, memory, verdict, ms) and whether all is well."""
        problem = self.build(app)
        if problem:
            return [("", "", problem, "")], False
        units, problem = self.record(app)
        if problem:
            return [("", "", problem, "")], False
        if not units:
            return [("", "", "recorded nothing", "")], False
        rows, good = [], True
        for unit in units:
            report, problem = self.replay(app, unit["id"])
            if problem:
                rows.append((unit["id"], "", problem, ""))
                good = False
                continue
            verdict = report["verdict"] + ("" if report["deterministic"] else ", varies from run to run")
            rows.append((unit["id"], f"{unit['memory_bytes'] / 1024:.0f} KiB", verdict, f"{report['baseline_ms']:.3g}"))
        return rows, good


def markdown(results, compiler):
    units = sum(len(rows) for _, rows, _ in results)
    exact = sum(1 for _, rows, _ in results for row in rows if row[2].startswith("bit-exact"))
    lines = [
        "# What records and replays", "",
        "Every application of `tests/apps`, recorded at its small size under the CUDA runtime stand-in and replayed on "
        "the cpu device. Made by:", "",
        "    python3 tests/integration/coverage.py --build-dir build/release --markdown docs/coverage.md", "",
        "What the cpu device makes of inline PTX: [inline-ptx.md](inline-ptx.md).", "",
        f"{sum(1 for _, _, good in results if good)} of {len(results)} applications (built by {compiler}) record and "
        f"replay; {exact} of {units} units are bit-exact.", "",
        "| application | unit | memory | replay | ms on this cpu |", "| --- | --- | --- | --- | --- |"
    ]
    for app, rows, _ in results:
        for index, (unit, memory, verdict, ms) in enumerate(rows):
            lines.append(f"| {app['name'] if index == 0 else ''} | {unit} | {memory} | {verdict} | {ms} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--work")
    parser.add_argument("--compiler", default="clang", choices=["clang", "nvcc"])
    parser.add_argument("--markdown")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    apps = read_apps()
    unknown = set(arguments.names) - {app["name"] for app in apps}
    if unknown:
        sys.exit(f"coverage.py: got application {', '.join(sorted(unknown))}, expected one of tests/apps/apps.tsv")
    chosen = [app for app in apps if not arguments.names or app["name"] in arguments.names]
    with tempfile.TemporaryDirectory() as scratch:
        coverage = Coverage(arguments.build_dir, arguments.work or scratch, arguments.compiler)
        results = []
        for app in chosen:
            rows, good = coverage.one(app)
            results.append((app, rows, good))
            for unit, memory, verdict, ms in rows:
                print(f"{'ok  ' if good else 'FAIL'} {app['name']:22} {unit:44} {memory:>10} {verdict}", flush=True)
    if arguments.markdown:
        pathlib.Path(arguments.markdown).write_text(markdown(results, arguments.compiler))
    good = sum(1 for _, _, fine in results if fine)
    print(f"{good} passed, {len(results) - good} failed")
    return 0 if good == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
