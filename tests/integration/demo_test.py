#!/usr/bin/env python3
"""The main job as a new user runs it: demo, then everything that can be done with its result.

  demo_test.py --build-dir DIR
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


def run(command, cwd, environment, exit_code=0):
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=300)
    expect(done.returncode == exit_code,
           f"{' '.join(command)}: got exit {done.returncode}, expected {exit_code}\n{done.stdout}\n{done.stderr}")
    return done


def check_demo_object(demo):
    for field in ("schema", "device", "unit", "baseline_ms", "best_ms", "speedup", "speedup_ci95", "verified", "patch"):
        expect(field in demo, f"the demo's object has no {field}")
    expect(demo["schema"] == "reprise.demo/1" and demo["device"] == "cpu", "wrong schema or device")
    expect(demo["verified"] is True and demo["baseline_matches_epilogue"] is True, "the demo was not verified")
    expect(demo["better"] is True, "the demo found nothing better")
    low, high = demo["speedup_ci95"]
    expect(1 < low <= demo["speedup"] <= high, f"odd interval {demo['speedup_ci95']} around {demo['speedup']}")
    expect(demo["best_ms"] < demo["baseline_ms"], "the best is not faster than the baseline")
    expect(demo["perturbed_inputs"] == "verified", f"perturbed inputs: {demo['perturbed_inputs']}")


def check(reprise, work):
    environment = dict(os.environ, HOME=str(work), XDG_CONFIG_HOME=str(work / "config"))
    done = run([reprise, "demo", "--budget", "10s", "--json"], work, environment)
    demo = json.loads(done.stdout)
    check_demo_object(demo)
    directory = work / "reprise-demo"
    store = ["--store", str(directory / "units")]
    result = str(directory / "results" / demo["unit"])

    trials = [json.loads(line) for line in (pathlib.Path(result) / "trials.jsonl").read_text().splitlines()]
    expect(len(trials) == demo["trials"], f"{len(trials)} trials in the log, {demo['trials']} in the result")

    replay = json.loads(run([reprise, "replay", demo["unit"], "--result", result, "--json"] + store, work,
                            environment).stdout)
    expect(replay["outcome"] == "OK" and replay["speedup"] > 1, f"the winner does not reproduce: {replay}")

    if demo["patch"]:
        original = (directory / "potential.cu").read_text()
        (work / "winner.patch").write_text(demo["patch"])
        run(["patch", "-p1", "-d", demo["patch_root"], "-i", str(work / "winner.patch")], work, environment)
        expect((directory / "potential.cu").read_text() != original, "the patch changed nothing")

    applied = json.loads(run([reprise, "apply", result, "--compare", "2", "--json", "--home", str(directory / "home"),
                              "--", str(directory / "potential")], work, environment).stdout)
    expect(applied["launches_applied"] == 5 and applied["launches_declined"] == 0, f"overlay did not apply: {applied}")
    expect(applied["same_exit_code"], f"the application ended differently with the winner: {applied}")

    run([reprise, "units", "--verify"] + store, work, environment)
    unit = json.loads(run([reprise, "inspect", demo["unit"], "--json"] + store, work, environment).stdout)
    expect(unit["schema"] == "reprise.unit/1", "inspect gives no unit")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", required=True)
    arguments = parser.parse_args()
    reprise = str(pathlib.Path(arguments.build_dir).resolve() / "bin/reprise")
    with tempfile.TemporaryDirectory(prefix="reprise-demo-test") as work:
        try:
            check(reprise, pathlib.Path(work))
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
