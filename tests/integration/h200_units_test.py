#!/usr/bin/env python3
"""Replays units that were recorded on an H200 (tests/integration/h200_units) on the cpu device.

  h200_units_test.py REPRISE

The units are of nvcc-built applications of tests/apps, as `reprise record --device cuda:0` made them there. Their chunks must
be whole, and their rebuilt IR must give what the GPU computed, within the tolerance between kinds of devices. What the cpu device cannot count it says.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

UNITS = pathlib.Path(__file__).resolve().parent / "h200_units"


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    reprise = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        store = pathlib.Path(directory) / "units"
        shutil.copytree(UNITS, store)  # replaying may write to a store
        units = json.loads(run([reprise, "units", "--store", str(store), "--json"]))["units"]
        if len(units) < 2:
            sys.exit(f"got {len(units)} units in {UNITS}, expected at least 2")
        for unit in units:
            report = json.loads(run([reprise, "replay", unit["id"], "--store", str(store), "--device", "cpu", "--pipeline",
                                     "default<O3>", "--iterations", "2", "--counters", "--json"]))
            if report["outcome"] != "OK" or not report["deterministic"]:
                sys.exit(f"{unit['id']}: {json.dumps(report)}")
            if report["counters"]["baseline"] != {"absent": "the cpu device has no counters"} or "absent" not in report["roofline"]:
                sys.exit(f"{unit['id']}: counters on the cpu device: {json.dumps(report)}")
            print(f"{unit['id']}: {report['verdict']} on the cpu device")


if __name__ == "__main__":
    main()
