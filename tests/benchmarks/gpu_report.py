"""What the benchmarks of a GPU share: running programs, and keeping figures in a file like docs/benchmarks/h200-record.json."""

import datetime
import json
import pathlib
import subprocess
import time


def run(command, environment=None, timeout_s=120):
    """Returns (exit code, standard output, standard error, seconds); a program that does not end in time gets exit code 124."""
    begin = time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout_s, env=environment,
                              encoding="utf-8", errors="replace")
        return done.returncode, done.stdout, done.stderr, time.monotonic() - begin
    except subprocess.TimeoutExpired:
        return 124, "", f"stopped after {timeout_s} s", time.monotonic() - begin


def gpu_and_driver():
    """"NVIDIA H200, 580.159.04 (GPU, driver)"."""
    _, name, _, _ = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    return f"{name.strip()} (GPU, driver)"


def update(path, entries, **shared):
    """Replaces in the file the metrics that were measured and keeps the rest; `shared` and today's date go into each."""
    shared["date"] = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    path = pathlib.Path(path)
    known = {entry["metric"]: entry for entry in json.loads(path.read_text())} if path.exists() else {}
    known.update({entry["metric"]: entry | shared for entry in entries})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([entry for _, entry in sorted(known.items())], indent=2) + "\n", encoding="utf-8")
