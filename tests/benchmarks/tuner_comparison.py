#!/usr/bin/env python3
"""Runs other people's tuners over the spaces that tuner_sim knows, and writes
their searches in the form that `tuner_sim --traces FILE` scores.

    python3 -m venv VENV && VENV/bin/pip install kernel_tuner optuna torch
    VENV/bin/python tests/benchmarks/tuner_comparison.py --spaces DIR \
        --out traces.jsonl --seeds 25 kt_genetic_algorithm optuna_tpe
    tuner_sim --spaces DIR --traces traces.jsonl

Kernel Tuner runs in its own simulation mode, with its own defaults; what is not
in the cache is a restriction that it knows. Optuna is asked and told: ordered
values as integers over their places, the rest as categories; the objective is
log time; what is not in the cache or fails is a violated constraint. Neither
what is not in the cache nor a repetition counts as an evaluation, for anyone:
that favours those who ask for it.

Every search runs in a process of its own, forked after what is the same for all was read: Kernel Tuner's search space
remembers which neighbours it gave out, and would tell one search of another.

A search that --out already holds is not run again, so that a run goes on where
it was interrupted.
"""
import argparse
import gzip
import json
import math
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import time
import warnings

EVALUATIONS = 220


class Cache:
    """A Kernel Tuner cache: its path unpacked, and its records by values."""

    def __init__(self, path, folder):
        self.name = f"{path.parent.name}/{path.name.removesuffix('.gz').removesuffix('.json')}"
        raw = path.read_bytes()
        text = gzip.decompress(raw) if path.suffix == ".gz" else raw
        self.path = pathlib.Path(folder) / (self.name.replace("/", "_") + ".json")
        self.path.write_bytes(text)
        content = json.loads(text)
        self.keys = content["tune_params_keys"]
        self.params = content["tune_params"]
        self.tune_arguments = None  # of Kernel Tuner
        self.times = {}
        for record in content["cache"].values():
            values = tuple(record[key] for key in self.keys)
            failed = isinstance(record["time"], str)
            self.times[values] = None if failed else record["time"]


def prepare_kernel_tuner(cache):
    """Reads the cache and builds the search space once, for all searches."""
    from kernel_tuner import interface, util
    from kernel_tuner.searchspace import Searchspace

    content = util.read_cache(str(cache.path), open_cache=False)
    known = util.FunctionConstraint(lambda *values: values in cache.times)
    space = Searchspace(content["tune_params"], [known], 1_000_000_000)
    interface.util.process_cache = lambda *_: content["cache"]
    interface.Searchspace = lambda *_, **__: space
    cache.tune_arguments = util.infer_args_from_cache(content) | {"cache": str(cache.path), "restrictions": [known]}


def run_kernel_tuner(cache, strategy, seed):
    """The times in the order in which the strategy first asked for them."""
    import numpy
    from kernel_tuner import interface

    random.seed(seed)
    numpy.random.seed(seed)
    evaluated = []
    seen = set()

    class Recorded:
        @staticmethod
        def tune(searchspace, runner, options):
            run = runner.run

            def recording(configurations, tuning_options):
                configurations = [tuple(c) for c in configurations]
                results = run(configurations, tuning_options)
                for configuration, result in zip(configurations, results):
                    known = configuration in cache.times
                    if result is None or not known or configuration in seen:
                        continue
                    seen.add(configuration)
                    evaluated.append(cache.times[configuration])
                return results

            runner.run = recording
            return interface.strategy_map[strategy].tune(searchspace, runner, options)

    interface.tune_kernel(
        **cache.tune_arguments, simulation_mode=True, strategy=Recorded,
        strategy_options={"max_fevals": EVALUATIONS}, quiet=True, verbose=False)
    return evaluated


def is_ordered(values):
    """As tuner_sim has it: flags and codes 0, 1, ..., k-1 are not."""
    return all(isinstance(v, (int, float)) for v in values) and values != list(range(len(values)))


class OptunaSpace:
    def __init__(self, cache):
        self.values = {}
        for index, key in enumerate(cache.keys):
            self.values[key] = sorted({values[index] for values in cache.times})

    def suggest(self, trial):
        chosen = []
        for key, values in self.values.items():
            if len(values) == 1:
                chosen.append(values[0])
            elif is_ordered(values):
                chosen.append(values[trial.suggest_int(key, 0, len(values) - 1)])
            else:
                chosen.append(trial.suggest_categorical(key, values))
        return tuple(chosen)


def run_optuna(cache, make_sampler, seed, suggestions):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = OptunaSpace(cache)
    study = optuna.create_study(sampler=make_sampler(
        seed, lambda trial: (trial.user_attrs.get("violation", 0.0),)))
    evaluated = []
    seen = set()
    worst = 0.0
    for _ in range(suggestions):
        if len(evaluated) == EVALUATIONS:
            break
        trial = study.ask()
        values = space.suggest(trial)
        time_ms = cache.times.get(values)
        if values in cache.times and values not in seen:
            seen.add(values)
            evaluated.append(time_ms)
        if time_ms is None:
            trial.set_user_attr("violation", 1.0)
            study.tell(trial, worst)
        else:
            worst = max(worst, math.log(time_ms))
            study.tell(trial, math.log(time_ms))
    return evaluated


def run_optuna_tpe(cache, seed):
    import optuna

    def sampler(seed, constraints):
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, constraints_func=constraints)

    return run_optuna(cache, sampler, seed, suggestions=3000)


def run_optuna_gp(cache, seed):
    import optuna

    def sampler(seed, constraints):
        return optuna.samplers.GPSampler(seed=seed, deterministic_objective=True, constraints_func=constraints)

    return run_optuna(cache, sampler, seed, suggestions=500)


def run(method, cache, seed):
    if method.startswith("kt_"):
        return run_kernel_tuner(cache, method.removeprefix("kt_"), seed)
    return {"optuna_tpe": run_optuna_tpe, "optuna_gp": run_optuna_gp}[method](cache, seed)


def isolated(search):
    """What search() returns, in a child that leaves nothing behind here."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(search()))
    child.start()
    sender.close()
    result = receiver.recv()
    child.join()
    return result


def already_there(path):
    done = set()
    if path.exists():
        for line in path.read_text().splitlines():
            search = json.loads(line)
            done.add((search["method"], search["space"], search["seed"]))
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="+", help="kt_STRATEGY, optuna_tpe, optuna_gp")
    parser.add_argument("--spaces", type=pathlib.Path, required=True, help="directory of Kernel Tuner caches")
    parser.add_argument("--only", default="", help="spaces whose path holds this")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file to add searches to")
    parser.add_argument("--seeds", type=int, default=25, help="seeds 1 to this")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")

    done = already_there(arguments.out)
    with tempfile.TemporaryDirectory() as folder, arguments.out.open("a") as out:
        for path in sorted(arguments.spaces.glob("**/*.json*")):
            if arguments.only not in str(path):
                continue
            cache = Cache(path, folder)
            for method in arguments.methods:
                began = time.time()
                wanted = [s for s in range(1, arguments.seeds + 1) if (method, cache.name, s) not in done]
                if wanted and method.startswith("kt_") and cache.tune_arguments is None:
                    prepare_kernel_tuner(cache)
                for seed in wanted:
                    evaluated = isolated(lambda seed=seed: run(method, cache, seed))
                    out.write(json.dumps({"method": method, "space": cache.name, "seed": seed,
                                          "evaluated_ms": evaluated[:EVALUATIONS]}) + "\n")
                    out.flush()
                print(f"{cache.name} {method}: {len(wanted)} searches in {time.time() - began:.0f} s", file=sys.stderr)
            os.unlink(cache.path)


if __name__ == "__main__":
    main()
