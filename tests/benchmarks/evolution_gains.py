#!/usr/bin/env python3
"""What searching gains on the applications of tests/apps, with no model: rewrites of the source by rule, and tuning.

  evolution_gains.py --reprise FILE [--device cpu|cuda:0] [--work DIR] [--json FILE] [--budget TIME] [NAME...]

Each application is built through `reprise cc` (by Clang for the cpu device, by nvcc for a GPU) and recorded, on the cpu device
at its small size. The kernel that takes longest is searched twice: with its source as it is (pipelines, code generation and
launches), and with everything. A gain is one that `reprise optimize` believes and verifies on perturbed inputs, too.

--json updates a file like docs/benchmarks/evolution.json: evolution.apps_gained_cpu (or _h200) and each application's ratio.
"""

import argparse
import json
import os
import pathlib
import platform
import sys

import gpu_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
APPS = ROOT / "tests/apps"
SEARCHES = {"tuned": ["--keep-source"], "evolved": []}


class Gains:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work).resolve()
        self.on_gpu = options.device.startswith("cuda")
        self.environment = dict(os.environ, REPRISE_HOME=str(self.work / "home"), REPRISE_LOG="error")

    def call(self, command):
        return gpu_report.run(command, self.environment, timeout_s=600)

    def record(self, app):
        """The id of the unit whose launch took longest, or None and why."""
        program = [str(self.work / "apps" / app["name"])] + ([] if self.on_gpu else app["small"])
        build = ["bash", str(APPS / "build.sh"), "--compiler", "nvcc" if self.on_gpu else "clang", "--out",
                 str(self.work / "apps"), "--launcher", f"{self.options.reprise} cc", app["name"]]
        code, out, err, _ = self.call(build + (["--cudart", "static"] if self.on_gpu else []))
        if code != 0:
            return None, f"does not build: {(err or out).strip()[-200:]}"
        store = ["--store", str(self.work / "units" / app["name"])]
        code, _, err, _ = self.call([self.options.reprise, "record", "--device", self.options.device, "--kernel", app["kernels"],
                                     "--count", "1"] + store + ["--"] + program)
        if code != 0:
            return None, f"does not record: {err.strip()[-200:]}"
        code, out, err, _ = self.call([self.options.reprise, "units", "--json"] + store)
        units = json.loads(out)["units"] if code == 0 else []
        longest = max(units, key=lambda unit: unit.get("duration_ms", 0), default=None)
        return (longest["id"], "") if longest else (None, f"no unit: {err.strip()[-200:]}")

    def search(self, app, unit, how):
        """The believed ratio and whether the source was changed; 1 where nothing is better, None where it cannot be searched."""
        results = self.work / "results" / how / app["name"]
        code, _, err, _ = self.call([self.options.reprise, "optimize", unit, "--device", self.options.device, "--store",
                                     str(self.work / "units" / app["name"]), "--budget", self.options.budget, "--output",
                                     str(results)] + SEARCHES[how])
        if code == 3:
            return 1.0, False
        if code != 0:
            print(f"{app['name']:22} {how}: {err.strip()[-200:]}", flush=True)
            return None, False
        report = json.loads((sorted(results.iterdir(), key=lambda path: path.stat().st_mtime)[-1] / "result.json").read_text())
        return report["speedup"], bool(report.get("patch"))

    def one(self, app):
        unit, problem = self.record(app)
        if unit is None:
            print(f"{app['name']:22} {problem}", flush=True)
            return None
        found = {how: self.search(app, unit, how) for how in SEARCHES}
        if found["evolved"][0] is None:
            return None
        tuned = "-" if found["tuned"][0] is None else f"{found['tuned'][0]:.3f}"
        print(f"{app['name']:22} tuned {tuned}, evolved {found['evolved'][0]:.3f}"
              f"{' with another source' if found['evolved'][1] else ''}", flush=True)
        return found

    def run(self, apps):
        found = {app["name"]: gains for app in apps if (gains := self.one(app)) is not None}
        where = "h200" if self.on_gpu else "cpu"
        gained = [name for name, gains in found.items() if gains["evolved"][0] > 1]
        by_source = [name for name in gained if found[name]["evolved"][1]]
        entries = [{"metric": f"evolution.apps_gained_{where}", "value": len(gained), "unit": "applications", "target": ">= 10"},
                   {"metric": f"evolution.apps_gained_{where}_by_source", "value": len(by_source), "unit": "applications", "target": ""},
                   {"metric": f"evolution.apps_searched_{where}", "value": len(found), "unit": "applications", "target": ""}]
        for name, gains in found.items():
            for how, (ratio, _) in gains.items():
                if ratio is not None:
                    entries.append({"metric": f"evolution.{where}.{how}.{name}", "value": round(ratio, 4), "unit": "ratio", "target": ""})
        print(f"{len(gained)} of {len(found)} applications gained, {len(by_source)} of them by another source")
        if self.options.json:
            environment = gpu_report.gpu_and_driver() if self.on_gpu else f"{processor()}, {os.cpu_count()} processors, small sizes"
            gpu_report.update(self.options.json, entries, environment=environment,
                              command=f"python3 tests/benchmarks/evolution_gains.py --reprise build/release/bin/reprise "
                                      f"--device {self.options.device} --budget {self.options.budget} --json docs/benchmarks/evolution.json")


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def read_apps():
    rows = [line.split("\t") for line in (APPS / "apps.tsv").read_text().splitlines()
            if line.strip() and not line.startswith("#")]
    return [{"name": row[0], "small": row[3].split(), "kernels": row[4]} for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reprise", required=True, help="the program to test")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N (default %(default)s)")
    parser.add_argument("--work", default=str(ROOT / "build/evolution-gains"), help="where to work (default %(default)s)")
    parser.add_argument("--json", help="where to write what was measured")
    parser.add_argument("--budget", default="10s", help="of each search (default %(default)s)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="applications (default: all)")
    options = parser.parse_args()
    options.reprise = str(pathlib.Path(options.reprise).resolve())
    Gains(options).run([app for app in read_apps() if not options.names or app["name"] in options.names])
    return 0


if __name__ == "__main__":
    sys.exit(main())
