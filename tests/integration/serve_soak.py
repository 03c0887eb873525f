#!/usr/bin/env python3
"""Many evaluations on a replay server while its processes are killed and its clients misbehave; run by hand.

  serve_soak.py --build-dir DIR [--evaluations N] [--seed N]

Every twenty evaluations something goes wrong: an executor or compile worker dies by SIGKILL, a client leaves in the
middle, or takes its answers slowly. Nothing may be lost or answered twice, no death may count against a variant, and at
the end the server has the processes, descriptors and directories that it began with, and no more memory than its caches may take.
"""

import argparse
import collections
import pathlib
import random
import sys
import tempfile
import time

import serve_test

BATCH = 20
WARM_UP = 5  # batches until what grows with use has grown
MOST_GROWTH_KIB = (256 + 64) << 10  # the compile pool keeps 256 MiB of results


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

    def batch(self):
        unit = self.random.choice(self.units[:2])
        numbers = range(self.number, self.number + BATCH)
        self.number += BATCH
        fault = self.random.choice(["executor", "compile-worker", "client leaves", "slow client"])
        at = self.random.randrange(BATCH)
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
            elif len(seen) == at + 1:
                self.counts[f"killed {fault}"] += self.server.kill(fault)
        serve_test.expect(fault == "client leaves" or len(seen) == BATCH, f"{BATCH - len(seen)} variants were not answered")

    def count(self, answer):
        serve_test.expect(answer.code == 0, f"not judged: {answer.message}")
        kind = self.types.OutcomeKind.Name(answer.outcome.kind).removeprefix("OUTCOME_KIND_")
        serve_test.expect(kind in ("OK", "INFRASTRUCTURE"), f"{kind} counts against a variant: {answer.outcome.diagnostics}")
        self.counts[kind] += 1

    def soak(self, evaluations):
        self.start()
        for unit in self.units[:2]:
            self.load(unit)
        before = None
        while self.number < evaluations:
            if self.number == WARM_UP * BATCH:
                before = self.settled()
            self.batch()
        after = self.settled()
        print(dict(self.counts))
        print(f"then {before}\nnow  {after}")
        for what in ("descriptors", "children", "directories"):
            serve_test.expect(before[what] == after[what], f"{what}: {before[what]} before, {after[what]} after")
        serve_test.expect(after["kib"] - before["kib"] < MOST_GROWTH_KIB, "its memory grows")
        serve_test.expect(self.server.end() == 0, "it does not end well")

    def settled(self):
        """With every child there again and nothing under way."""
        for unit in self.units[:2]:
            list(self.evaluate(unit, self.variants([0, 1, 2, 3]), fresh=True))
        time.sleep(1)
        return resources(self.server.process.pid)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--evaluations", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        (work / "python").mkdir()
        serve_test.generate(work / "python")
        soak = Soak(str(options.build_dir / "bin/reprise"), work, options.seed)
        try:
            soak.soak(options.evaluations)
        except (serve_test.Failure, soak.grpc.RpcError) as failure:
            print((work / "serve.log").read_text()[-3000:], file=sys.stderr)
            sys.exit(f"serve_soak.py: {failure} after {soak.number} evaluations: {dict(soak.counts)}")


if __name__ == "__main__":
    main()
