#!/usr/bin/env python3
"""Loads a unit on a replay server, judges variants of it, and tunes it: a client made from replay.proto alone.

  client.py --server ADDRESS [--certs DIR] [--unit UNIT] [--pipeline PASSES]... [--source FILE] [--tune TRIALS]

ADDRESS is what `reprise serve` prints. Without --unit it lists what the server has. README.md beside it says how the modules
that it imports are made.
"""

import argparse
import pathlib
import sys

import grpc

from reprise.v1 import replay_pb2, replay_pb2_grpc, types_pb2


def connect(address, certificates):
    """Plaintext on one host; beyond it the files of one role, of `reprise certs`."""
    if not certificates:
        return grpc.insecure_channel(address)
    directory = pathlib.Path(certificates)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(
        (directory / "ca.pem").read_bytes(), (directory / "client.key").read_bytes(), (directory / "client.pem").read_bytes()))


def kind_name(outcome):
    return types_pb2.OutcomeKind.Name(outcome.kind).removeprefix("OUTCOME_KIND_")


def describe(outcome):
    if outcome.kind != types_pb2.OUTCOME_KIND_OK:
        return f"{kind_name(outcome)}: {outcome.diagnostics.splitlines()[0] if outcome.diagnostics else ''}"
    speedup = outcome.speedup
    return f"OK {speedup.ratio:.3f}x [{speedup.ci95_low:.3f}, {speedup.ci95_high:.3f}] of {speedup.pairs} pairs"


def list_units(service):
    for unit in service.ListUnits(replay_pb2.ListUnitsRequest()).units:
        state = replay_pb2.UnitState.Name(unit.state).removeprefix("UNIT_STATE_").lower()
        print(f"{unit.unit_id:40} {state:12} {unit.device or '-':8} {unit.bytes / 2**20:9.1f} MiB  {unit.kernel}")


def evaluate(service, unit, variants):
    request = replay_pb2.EvaluateRequest(unit_id=unit, variants=variants)
    for answer in service.Evaluate(request):
        what = answer.message if answer.code else describe(answer.outcome)
        print(f"variant {answer.index}: {what}{' (known)' if answer.known else ''}")


def tune(service, unit, trials):
    for event in service.Tune(replay_pb2.TuneRequest(unit_id=unit, trials=trials)):
        if event.HasField("trial") and event.trial.best:
            print(f"trial {event.trial.number}: {describe(event.trial.outcome)}: {event.trial.description}")
        if event.HasField("end"):
            print(f"{event.end.trials} trials, {event.end.same_code} of them the same code as another; best: {event.end.best}")


def variants_of(options):
    variants = [types_pb2.Variant(pipeline=passes) for passes in options.pipeline]
    for source in options.source:
        path = pathlib.Path(source).resolve()
        variants.append(types_pb2.Variant(sources=[types_pb2.SourceOverlay(path=str(path), content=path.read_bytes())]))
    return variants or [types_pb2.Variant()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="what `reprise serve` printed")
    parser.add_argument("--certs", help="directory with ca.pem, client.pem and client.key")
    parser.add_argument("--unit", help="id, or the beginning of one")
    parser.add_argument("--pipeline", action="append", default=[], help="LLVM's textual pipeline of a variant; may be repeated")
    parser.add_argument("--source", action="append", default=[], help="edited file, at the path it was recorded from")
    parser.add_argument("--tune", type=int, default=0, metavar="TRIALS", help="tune the recorded source")
    options = parser.parse_args()
    service = replay_pb2_grpc.ReplayServiceStub(connect(options.server, options.certs))
    try:
        if not options.unit:
            return list_units(service)
        unit = service.LoadUnit(replay_pb2.LoadUnitRequest(unit_id=options.unit, lease_s=600)).unit
        print(f"{unit.unit_id} on {unit.device}: baseline {unit.baseline.median_ms:.4g} ms")
        evaluate(service, unit.unit_id, variants_of(options))
        if options.tune:
            tune(service, unit.unit_id, options.tune)
    except grpc.RpcError as error:
        sys.exit(f"client.py: {error.code().name}: {error.details()}")


if __name__ == "__main__":
    main()
