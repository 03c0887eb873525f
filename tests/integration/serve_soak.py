#!/usr/bin/env python3
"""Many evaluations on a replay server while its processes are killed and its clients misbehave; run by hand.

  serve_soak.py --build-dir DIR [--evaluations N] [--seed N] [--faults]

Every twenty evaluations something goes wrong: an executor or compile worker dies by SIGKILL, a client leaves in the
middle, takes its answers slowly, or opens a connection and says nothing. With --faults the server is reprise_faulty:
executors and compilers die or hang at what they do, messages between processes are cut short, writes find the disk full;
and at the end the server itself is killed again and again while it judges.

Nothing may be lost or answered twice; no death may count against a variant (a launch or a compiler that hangs may: nobody
can tell it from a variant that does); and at the end the server has the processes, descriptors and directories that it
began with, and no more memory than its caches may take.
"""

import argparse
import collections
import hashlib
import os
import pathlib
import random
import socket
import sys
import tempfile
import time

import serve_test

BATCH = 20
WARM_UP = 5  # batches until what grows with use has grown
MOST_GROWTH_KIB = (256 + 64) << 10  # the compile pool keeps 256 MiB of results
# About one in twenty evaluations meets one: it passes six launches and sixty messages.
FAULTS = ("launch:kill:0.002,launch:hang:0.00005,compile:kill:0.01,compile:hang:0.0002,compile-reply:garble:0.01,"
          "channel:garble:0.0002,write:full:0.3")
SERVER_KILLS = 10
# What a fault of the server's own looks like to a client; the variant is not to blame for others.
BLAMED = {"TIMEOUT": "launch:hang", "COMPILE_ERROR": "compile:hang"}


def resources(pid):
    process = pathlib.Path("/proc") / str(pid)
    rss = int(next(line for line in (process / "status").read_text().splitlines() if line.startswith("VmRSS")).split()[1])
    kinds = {verb: len(pids) for verb, pids in serve_test.children(pid).items()}
    return {"kib": rss, "descriptors": len(list((process / "fd").iterdir())), "children": kinds,
            "directories": len(list(pathlib.Path(tempfile.gettempdir()).glob("reprise-*")))}


class Soak(serve_test.Check):
    def __init__(self, reprise, work, seed):
        super().__init__(reprise, work)
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.number = 0
        self.fault_log = work / "faults"

    def injected(self, what=""):
        return sum(line.startswith(what) for line in self.fault_log.read_text().splitlines()) if self.fault_log.exists() else 0

    def batch(self):
        unit = self.random.choice(self.units[:2])
        numbers = range(self.number, self.number + BATCH)
        self.number += BATCH
        fault = self.random.choice(["executor", "compile-worker", "client leaves", "slow client", "silent client", "upload"])
        at = self.random.randrange(BATCH)
        if fault == "silent client":
            silent = socket.socket(socket.AF_UNIX)
            silent.connect(self.server.address.removeprefix("unix:"))
            silent.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        answers = self.evaluate(unit, self.variants(numbers), fresh=True)
        seen = set()
        for answer in answers:
            serve_test.expect(answer.index not in seen, f"variant {answer.index} was answered twice")
            seen.add(answer.index)
            self.count(answer)
            if fault == "slow client":
                time.sleep(0.02)
            elif len(seen) == at + 1 and fault == "client leaves":
                answers.cancel()
                self.counts["left"] += BATCH - len(seen)
                break
            elif len(seen) == at + 1 and fault == "upload":
                self.upload()
            elif len(seen) == at + 1 and fault in ("executor", "compile-worker"):
                self.counts[f"killed {fault}"] += self.server.kill(fault)
        serve_test.expect(fault == "client leaves" or len(seen) == BATCH, f"{BATCH - len(seen)} variants were not answered")
        if fault == "silent client":
            silent.close()

    def upload(self):
        """Chunks that meet a full disk are refused, and taken when there is room."""
        data = self.random.randbytes(50_000)
        chunk = self.unit_protos.Chunk(sha256=hashlib.sha256(data).digest(), bytes=len(data))
        for _ in range(100):
            try:
                self.transfer.PutChunks(iter([self.replay.PutChunksRequest(chunk=chunk, data=data)]), timeout=60)
                break
            except self.grpc.RpcError as error:
                full = error.code() == self.grpc.StatusCode.RESOURCE_EXHAUSTED
                serve_test.expect(full and self.injected("write:full"), f"an upload was refused: {error}")
        read = list(self.transfer.GetChunks(self.replay.GetChunksRequest(chunks=[chunk]), timeout=60))
        serve_test.expect([part.data for part in read] == [data], "an uploaded chunk reads otherwise")
        self.counts["uploads"] += 1

    def count(self, answer):
        serve_test.expect(answer.code == 0, f"not judged: {answer.message}")
        kind = self.types.OutcomeKind.Name(answer.outcome.kind).removeprefix("OUTCOME_KIND_")
        self.counts[kind] += 1
        if kind not in ("OK", "INFRASTRUCTURE"):
            faults = self.injected(BLAMED[kind]) if kind in BLAMED else 0
            serve_test.expect(self.counts[kind] <= faults, f"{kind} counts against a variant: {answer.outcome.diagnostics}")

    def start_and_load(self):
        self.start()
        self.transfer = self.new_transfer_stub(self.grpc.insecure_channel(self.server.address))
        for unit in self.units[:2]:
            self.load_in_spite(unit)

    def load_in_spite(self, unit):
        """Loading replays the kernel, and may meet faults as well."""
        for _ in range(20):
            try:
                return self.load(unit)
            except self.grpc.RpcError as error:
                serve_test.expect(self.injected() and self.server.process.poll() is None, f"not loaded: {error}")
                self.counts["load again"] += 1
        raise serve_test.Failure("a unit could not be loaded")

    def soak(self, evaluations):
        self.start_and_load()
        before = None
        while self.number < evaluations:
            if self.number == WARM_UP * BATCH:
                before = self.settled()
            self.batch()
        after = self.settled()
        print(dict(self.counts), collections.Counter(self.fault_log.read_text().split()) if self.injected() else "")
        print(f"then {before}\nnow  {after}")
        for what in ("descriptors", "children", "directories"):
            serve_test.expect(before[what] == after[what], f"{what}: {before[what]} before, {after[what]} after")
        serve_test.expect(after["kib"] - before["kib"] < MOST_GROWTH_KIB, "its memory grows")
        self.nothing_counted_twice()

    def nothing_counted_twice(self):
        statistics = self.stub.GetStatistics(self.replay.GetStatisticsRequest()).devices[0]
        made = sum(statistics.outcomes.values())
        answered = sum(self.counts[kind] for kind in statistics.outcomes)
        serve_test.expect(answered <= made <= answered + self.counts["left"],
                          f"{made} outcomes for {answered} answers and {self.counts['left']} that nobody waited for")

    def kill_the_server(self):
        """Who asks a server that dies asks the next one for what is left."""
        for _ in range(SERVER_KILLS):
            left = set(range(BATCH))
            while left:
                order = sorted(left)
                try:
                    for answer in self.evaluate(self.units[0], self.variants(self.number + index for index in order)):
                        self.count(answer)
                        left.remove(order[answer.index])
                        if len(left) == BATCH // 2 and self.random.random() < 0.7:
                            self.server.process.kill()
                except self.grpc.RpcError as error:
                    serve_test.expect(error.code() == self.grpc.StatusCode.UNAVAILABLE, f"a dying server says {error}")
                    serve_test.expect(self.server.end() == -9, "it ended otherwise")
                    self.counts["killed server"] += 1
                    self.start_and_load()
            self.number += BATCH

    def settled(self):
        """With every child there again, which faults may kill even now, and nothing under way."""
        for _ in range(20):
            for unit in self.units[:2]:
                for answer in self.evaluate(unit, self.variants([0, 1, 2, 3]), fresh=True):
                    self.count(answer)
            time.sleep(1)
            found = resources(self.server.process.pid)
            if found["children"] == {"compile-worker": 2, "executor": 2}:
                return found
        raise serve_test.Failure(f"it does not come to rest: {found}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--evaluations", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", action="store_true", help="of the server's own, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        for folder in ("python", "tmp"):
            (work / folder).mkdir()
        tempfile.tempdir = os.environ["TMPDIR"] = str(work / "tmp")  # of this server alone
        serve_test.generate(work / "python")
        if options.faults:
            os.environ.update(REPRISE_FAULTS=FAULTS, REPRISE_FAULTS_LOG=str(work / "faults"))
        program = "reprise_faulty" if options.faults else "reprise"
        soak = Soak(str(options.build_dir / "bin" / program), work, options.seed)
        try:
            soak.soak(options.evaluations)
            soak.kill_the_server()
            print(dict(soak.counts))
            serve_test.expect(soak.server.end() == 0, "it does not end well")
        except (serve_test.Failure, soak.grpc.RpcError) as failure:
            print((work / "serve.log").read_text()[-3000:], file=sys.stderr)
            sys.exit(f"serve_soak.py: {failure} after {soak.number} evaluations: {dict(soak.counts)}")


if __name__ == "__main__":
    main()
