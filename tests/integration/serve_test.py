#!/usr/bin/env python3
"""A replay server as its clients meet it, on the cpu device, with any of its processes killed at any time.

  serve_test.py --build-dir DIR

The client is docs/examples/python-client, made from replay.proto; the units were recorded on an H200.
"""

import argparse
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLIENT = ROOT / "docs/examples/python-client/client.py"
PROTOS = ["types", "unit", "replay"]


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


def generate(directory):
    plugin = shutil.which("grpc_python_plugin")
    subprocess.run(["protoc", "-I", ROOT / "proto", "--python_out", directory, "--grpc_out", directory, "--plugin",
                    f"protoc-gen-grpc={plugin}"] + [ROOT / f"proto/reprise/v1/{name}.proto" for name in PROTOS], check=True)
    sys.path.insert(0, str(directory))


def children(pid):
    """All processes that descend from it, by their verb."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if parent == pid and len(words) > 1:
                found.setdefault(words[1].decode(), []).append(int(entry.name))
    return found


class Server:
    def __init__(self, reprise, store, work):
        self.log = open(work / "serve.log", "a", encoding="utf-8")
        # One thread and one worker: machines with two processors have to keep up.
        self.process = subprocess.Popen(
            [reprise, "serve", "--device", "cpu", "--store", store, "--listen", f"unix:{work}/run/serve.sock",
             "--compile-workers", "2", "--grace", "60s", "--metrics", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=self.log, text=True, env=dict(os.environ, REPRISE_LOG="info"))
        self.address = self.process.stdout.readline().strip()
        expect(self.address.startswith("unix:"), f"the server printed '{self.address}'")

    def kill(self, verb):
        """SIGKILL to one of its children; False where there is none at the moment."""
        found = children(self.process.pid).get(verb, [])
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(found), signal.SIGKILL)
        return bool(found)

    def end(self, sign=signal.SIGTERM):
        left = [pid for pids in children(self.process.pid).values() for pid in pids]
        self.process.send_signal(sign)
        code = self.process.wait(timeout=90)
        self.log.close()
        deadline = time.monotonic() + 10
        while any(alive(pid) for pid in left):
            expect(time.monotonic() < deadline, "children outlive the server")
            time.sleep(0.05)
        return code


def alive(pid):
    try:
        return "\nState:\tZ" not in (pathlib.Path("/proc") / str(pid) / "status").read_text()
    except OSError:
        return False


class Check:
    def __init__(self, reprise, work):
        import grpc  # noqa: these need generate()
        from reprise.v1 import replay_pb2, replay_pb2_grpc, types_pb2, unit_pb2
        self.grpc, self.replay, self.types, self.unit_protos = grpc, replay_pb2, types_pb2, unit_pb2
        self.new_stub, self.new_transfer_stub = replay_pb2_grpc.ReplayServiceStub, replay_pb2_grpc.UnitTransferServiceStub
        self.reprise, self.work = reprise, work
        self.store = work / "units"
        shutil.copytree(HERE / "h200_units", self.store)

    def start(self):
        self.server = Server(self.reprise, self.store, self.work)
        self.stub = self.new_stub(self.grpc.insecure_channel(self.server.address))
        units = self.stub.ListUnits(self.replay.ListUnitsRequest()).units
        self.units = [unit.unit_id for unit in units]
        expect(len(self.units) >= 2, f"{len(self.units)} units, expected 2")

    def load(self, unit):
        return self.stub.LoadUnit(self.replay.LoadUnitRequest(unit_id=unit), timeout=300).unit

    def variants(self, numbers):
        return [self.types.Variant(pipeline="default<O2>", codegen=self.types.CodegenOptions(unroll_threshold=100 + number))
                for number in numbers]

    def evaluate(self, unit, variants, **options):
        request = self.replay.EvaluateRequest(unit_id=unit, variants=variants,
                                              sampling=self.replay.Sampling(minimum_pairs=2, maximum_pairs=2), **options)
        return self.stub.Evaluate(request, timeout=600)

    def example_client(self):
        environment = dict(os.environ, PYTHONPATH=sys.path[0])
        for words, expected in ((["--unit", self.units[0], "--pipeline", "default<O2>", "--pipeline", "no-such-pass", "--tune",
                                  "6"], ["variant 0: OK", "variant 1: COMPILE_ERROR", "6 trials"]), ([], self.units)):
            done = subprocess.run([sys.executable, CLIENT, "--server", self.server.address] + words, env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
            expect(done.returncode == 0, f"the example client failed: {done.stdout}")
            for text in expected:
                expect(text in done.stdout, f"the example client says nothing of '{text}': {done.stdout}")

    def killed_children_lose_nothing(self):
        """Outcomes keep coming, each once, whoever dies; nobody's death counts against a variant."""
        for unit in self.units[:2]:
            self.load(unit)
        ok = self.types.OUTCOME_KIND_OK
        for turn, verb in enumerate(["executor", "compile-worker", "executor", "compile-worker"]):
            seen = []
            killed = 0
            answers = self.evaluate(self.units[turn % 2], self.variants(range(10 * turn, 10 * turn + 10)))
            for answer in answers:
                seen.append(answer.index)
                expect(answer.code == 0, f"not judged: {answer.message}")
                infrastructure = answer.outcome.kind == self.types.OUTCOME_KIND_INFRASTRUCTURE
                expect(answer.outcome.kind == ok or infrastructure,
                       f"a kill counted against a variant: {answer.outcome.kind} {answer.outcome.diagnostics}")
                if killed < 3 and self.server.kill(verb):
                    killed += 1
            expect(sorted(seen) == list(range(10)), f"answers {seen}")
            expect(killed > 0, f"no {verb} to kill")
        # And then it is as it was.
        kinds = [answer.outcome.kind for answer in self.evaluate(self.units[0], self.variants(range(100, 104)))]
        expect(kinds == [ok] * 4, f"after the kills: {kinds}")

    def health(self):
        """As the standard health service says it, read without its proto."""
        name = b"reprise.v1.ReplayService"
        check = self.grpc.insecure_channel(self.server.address).unary_unary(
            "/grpc.health.v1.Health/Check", request_serializer=lambda data: data, response_deserializer=lambda data: data)
        return {b"\x08\x01": "SERVING", b"\x08\x02": "NOT_SERVING"}[check(b"\n" + bytes([len(name)]) + name, timeout=60)]

    def metrics(self):
        port = re.findall(r"metrics at http://(127\.0\.0\.1:\d+)/metrics", (self.work / "serve.log").read_text())[-1]
        with urllib.request.urlopen(f"http://{port}/metrics", timeout=60) as page:
            return page.read().decode()

    def tells_how_it_is(self):
        expect(self.health() == "SERVING", "health does not say SERVING")
        page = self.metrics()
        expect(re.search(r'reprise_outcomes_total\{device="cpu",kind="OK"\} [1-9]', page), f"no outcomes in {page[:2000]}")
        expect('reprise_stage_seconds_bucket{device="cpu",kind="OK",stage="time",le="+Inf"}' in page, "no time of stages")

    def equal_requests_are_known(self):
        first = list(self.evaluate(self.units[0], self.variants([500])))[0]
        second = list(self.evaluate(self.units[0], self.variants([500])))[0]
        expect(not first.known and second.known, "an equal evaluation was made again")
        expect(first.outcome.variant_ns == second.outcome.variant_ns, "it has another outcome")

    def sigterm_hands_back(self):
        answers = self.evaluate(self.units[0], self.variants(range(200, 260)))
        codes = [next(answers).code]
        started = time.monotonic()
        code = None

        def end():
            nonlocal code
            code = self.server.end()
        import threading
        ending = threading.Thread(target=end)
        ending.start()
        codes += [answer.code for answer in answers]
        ending.join()
        expect(code == 0, f"exit status {code}")
        expect(len(codes) == 60, f"{len(codes)} answers of 60")
        unavailable = self.grpc.StatusCode.UNAVAILABLE.value[0]
        expect(set(codes) == {0, unavailable}, f"codes {set(codes)}")
        expect(time.monotonic() - started < 60, "it took its whole grace")

    def run(self):
        self.start()
        self.example_client()
        self.killed_children_lose_nothing()
        self.equal_requests_are_known()
        self.tells_how_it_is()
        self.sigterm_hands_back()
        self.start()  # at the same address
        self.load(self.units[0])
        expect(self.server.end(signal.SIGKILL) == -signal.SIGKILL, "it survived SIGKILL")
        self.start()
        self.load(self.units[0])
        expect(self.server.end() == 0, "it does not end well after another was killed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        (work / "python").mkdir()
        generate(work / "python")
        check = Check(str(options.build_dir / "bin/reprise"), work)
        try:
            check.run()
        except (Failure, check.grpc.RpcError) as failure:
            print((work / "serve.log").read_text()[-3000:], file=sys.stderr)
            sys.exit(f"serve_test.py: {failure}")


if __name__ == "__main__":
    main()
