#!/usr/bin/env python3
"""Breaks recordings on this machine's GPU and looks at what is left.

  record_faults_on_gpu.py --reprise FILE --apps DIR [--work DIR]

DIR holds programs that record_on_gpu.py (or build.sh) built from apps.tsv and apps-gpu.tsv. Each test kills or starves one
party; the application must see what it would have seen without the recorder, and units that were finished must be whole.
Exits 0 when every test did as it should. Needs a GPU; the disk that is full is a small tmpfs, so root.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time


class Faults:
    def __init__(self, options):
        self.reprise = str(pathlib.Path(options.reprise).resolve())
        self.apps = pathlib.Path(options.apps).resolve()
        self.work = pathlib.Path(options.work or tempfile.mkdtemp(prefix="record-faults-")).resolve()
        self.failed = []

    def app(self, name, *arguments):
        return [str(self.apps / name), *arguments]

    def record(self, store, program, *options):
        return [self.reprise, "record", "--device", "cuda:0", "--store", str(store), *options, "--", *program]

    @staticmethod
    def run(command):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
                              timeout=120)

    def whole_units(self, store):
        """How many units the store has, all of them read and found whole; -1: some are not."""
        done = self.run([self.reprise, "units", "--store", str(store), "--verify"])
        lines = done.stdout.strip().splitlines()
        return len(lines) if done.returncode == 0 and all("whole" in line for line in lines) else -1

    def expect(self, test, what, right, detail=""):
        print(f"{'ok  ' if right else 'FAIL'} {test}: {what}{'' if right else '  ' + detail.strip()[-300:]}", flush=True)
        if not right:
            self.failed.append(f"{test}: {what}")

    def application_killed(self):
        store = self.work / "killed"
        program = self.app("nbody", "--iterations", "100000")
        recorder = subprocess.Popen(self.record(store, program, "--kernel", "AccelerationKernel"), stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True)
        time.sleep(4)
        subprocess.run(["pkill", "-9", "-x", "nbody"], check=False)
        _, messages = recorder.communicate(timeout=120)
        self.expect("application killed", "record ends as the application did", recorder.returncode in (137, -9),
                    f"exit {recorder.returncode}: {messages}")
        self.expect("application killed", "what was captured is a whole unit", self.whole_units(store) == 1, messages)

    def recorder_killed(self):
        store = self.work / "recorder-killed"
        out = self.work / "out.txt"
        program = ["bash", "-c", f"exec {self.apps / 'nbody'} --iterations 400 > {out} 2>&1"]
        recorder = subprocess.Popen(self.record(store, program, "--kernel", "none"), stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(2)
        os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait()
        for _ in range(200):
            if "PASS" in out.read_text() or "FAIL" in out.read_text():
                break
            time.sleep(0.1)
        self.expect("recorder killed", "the application ends as it would have", "PASS" in out.read_text(), out.read_text())

    def recorder_killed_while_copying(self):
        store = self.work / "copying-killed"
        out = self.work / "copying.txt"
        program = ["bash", "-c", f"exec {self.apps / 'copy'} --size 1073741824 --iterations 1 > {out} 2>&1"]
        recorder = subprocess.Popen(self.record(store, program), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    start_new_session=True)
        time.sleep(7.2)
        os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait()
        for _ in range(300):
            if "PASS" in out.read_text() or "FAIL" in out.read_text():
                break
            time.sleep(0.1)
        print("    it said: " + " ".join(out.read_text().split())[-160:])
        self.expect("recorder killed around a copy", "the application ends as it would have", "PASS" in out.read_text(),
                    out.read_text())

    def disk_full(self):
        disk = self.work / "disk"
        disk.mkdir(parents=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]).returncode != 0:
            print("skip disk full: tmpfs cannot be mounted here", flush=True)
            return
        try:
            native = self.run(self.app("matmul", "--small"))
            first = self.run(self.record(disk, self.app("matmul", "--small")))
            units = self.whole_units(disk)
            self.expect("disk full", "a unit that fits is kept", first.returncode == 0 and units >= 1, first.stderr)
            large = self.run(self.record(disk, self.app("copy", "--size", "20000000", "--iterations", "1")))
            self.expect("disk full", "record says what is wrong", large.returncode != 0 and "space" in large.stderr.lower(),
                        f"exit {large.returncode}: {large.stderr}")
            self.expect("disk full", "the application passed", "PASS" in large.stdout, large.stdout)
            self.expect("disk full", "units that were there are whole", self.whole_units(disk) == units)
            self.expect("disk full", "outputs are the same", native.stdout == first.stdout, first.stdout)
        finally:
            subprocess.run(["umount", str(disk)], check=False)

    def device_full(self):
        native = self.run(self.app("exhausted", "--small", "--pieces"))
        store = self.work / "exhausted"
        recorded = self.run(self.record(store, self.app("exhausted", "--small", "--pieces")))
        mib = [1024 * int(gib) + 16 * int(rest) for text in (native.stdout, recorded.stdout)
               for gib, rest in re.findall(r"(\d+) GiB and (\d+) pieces", text)]
        self.expect("device full", f"the application gets what it gets natively ({mib} MiB)",
                    len(mib) == 2 and mib[1] >= mib[0] - 256, native.stdout + recorded.stdout + recorded.stderr)
        self.expect("device full", "the application passed", "PASS" in recorded.stdout, recorded.stdout + recorded.stderr)
        self.expect("device full", "a launch whose memory the host cannot hold is refused by name",
                    "FullDeviceKernel" in recorded.stderr and "host memory" in recorded.stderr, recorded.stderr)
        self.expect("device full", "the launch after it is a unit", self.whole_units(store) == 1, recorded.stderr)

    def kernel_faults(self):
        native = self.run(self.app("fault", "--small"))
        store = self.work / "faulted"
        recorded = self.run(self.record(store, self.app("fault", "--small")))
        self.expect("kernel faults", "the application sees what it would have seen", native.stdout == recorded.stdout,
                    recorded.stdout)
        self.expect("kernel faults", "record says that the kernel failed by itself", "failed by itself" in recorded.stderr,
                    recorded.stderr)
        self.expect("kernel faults", "the launch before it is a unit", self.whole_units(store) == 1, recorded.stderr)

    def all(self):
        for test in (self.application_killed, self.recorder_killed, self.recorder_killed_while_copying, self.disk_full,
                     self.device_full, self.kernel_faults):
            test()
        shutil.rmtree(self.work, ignore_errors=True)
        print(f"{len(self.failed)} failed" if self.failed else "all as it should be", flush=True)
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reprise", required=True, help="the program to test")
    parser.add_argument("--apps", required=True, help="where the built programs are")
    parser.add_argument("--work", help="where to work (default: a temporary directory)")
    return Faults(parser.parse_args()).all()


if __name__ == "__main__":
    sys.exit(main())
