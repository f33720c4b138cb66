"""Fit a table or pictures, and describe the fit as benchmarks save it."""

import time
from dataclasses import asdict
from typing import Any

from fedcso.fitting.config import FitConfig
from fedcso.fitting.pipeline import begin, carry_out

STAGES = {"training on pooled data": "comparison", "calibrating": "page and model"}
"""How the line begins that a fit says at the beginning of a stage; reading and the search come before."""


def measure_fit(config: FitConfig) -> dict[str, Any]:
    """Fit; print what it says, and return the seconds of each stage, the chosen settings and the test results."""
    began = time.perf_counter()
    sites = config.load()
    begins = {"reading": began, "search": time.perf_counter()}

    def say(line: str) -> None:
        print(f"{time.perf_counter() - began:7.0f} s   {line}", flush=True)
        begins.update({stage: time.perf_counter() for words, stage in STAGES.items() if line.startswith(words)})

    fitted = carry_out(begin(config, sites), config, sites, say)
    ends = [*list(begins.values())[1:], time.perf_counter()]
    print(fitted.summary())
    decision = fitted.decision
    return {
        "minutes": config.minutes,
        "inputs": list(sites.train[0].inputs.shape[1:]),
        "training": asdict(decision.whole("train")),
        "test": asdict(decision.whole("test")),
        "seconds": {stage: end - start for (stage, start), end in zip(begins.items(), ends, strict=True)},
        "settings": dict(decision.settings),
        "notes": [note for note in decision.notes if "--minutes" in note],
        "contenders": [
            {"name": one.name, "average_precision": asdict(one.average_precision), "note": one.note}
            for one in decision.contenders
        ],
    }


def print_fit(result: dict[str, Any]) -> None:
    """Print the times and the test results."""
    print(f"\n--minutes {result['minutes']:g}, {result['settings']['steps']:,} steps")
    print(", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in result["seconds"].items()))
    for one in result["contenders"]:
        print(f"  {one['average_precision']['value']:.3f}  {one['name']}  {one['note']}")
