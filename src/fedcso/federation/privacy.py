"""Client-level (ε, δ)-differential privacy of a run with noise, computed by an accountant.

Every round releases the mean of clipped updates with Gaussian noise of z times what one site can contribute. Rényi
differential privacy adds up over rounds (Google's dp-accounting, through Flower's accountant). Neighbours are runs with
and without one site's updates. Taking part in only some rounds is not counted as a gain: the sites know the seed.

Nothing here is taken from a site's answer. The server counts its rounds and which updates it has used, measures their
norms, clips them and adds the noise. In secure sums each site clips its own update, and nobody else knows its norm.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from flwr.serverapp import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    RdpAccountant,
    SamplingMethod,
)

from fedcso.core.trace import Trace
from fedcso.federation.journal import ANSWERED
from fedcso.federation.options import Federation


def epsilon(noise: float, rounds: int, sites: int, delta: float) -> float:
    """Return ε at δ after a number of rounds with noise multiplier z."""
    if not rounds:
        return 0.0
    config = PrivacyConfig(
        target_delta=delta,
        population_size=sites,
        neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
        sampling_method=SamplingMethod.NO_AMPLIFICATION,
    )
    accountant = RdpAccountant(config)
    accountant.compose(GaussianPrivacyEvent(noise, sample_size=sites, population_size=sites), count=rounds)
    return float(accountant.get_epsilon(delta))


def _clipped(rows: Iterable[Mapping[str, Any]], longest: float) -> int:
    return sum(float(row["norm"]) > longest for row in rows)


def statement(federation: Federation, traces: Iterable[Trace], rows: Iterable[Mapping[str, Any]] = ()) -> str:
    """Return the privacy spent by all methods and seeds of a run together, and by each site, as JSON.

    Args:
        federation: the options
        traces: of all methods and seeds
        rows: the journal, which says in which rounds each site's update was used, and how it was clipped
    """
    rounds, names = sum(trace.costs.rounds for trace in traces), federation.names

    def spent(rounds: int) -> float:
        return epsilon(federation.dp_noise, rounds, len(names), federation.dp_delta)

    about = {"epsilon": spent(rounds), "delta": federation.dp_delta, "rounds": rounds}
    about |= {"noise_multiplier": federation.dp_noise, "clip_update": federation.clip_update}
    used = [row for row in rows if row["outcome"] == ANSWERED]
    by_site = {name: [row for row in used if row["site"] == name] for name in names}
    sites = {
        name: {
            "rounds": len(own),
            "epsilon": spent(len(own)),
            "clipped": None if federation.secure_aggregation else _clipped(own, federation.clip_update),
            "smallest_noise": min((float(row["noise"]) for row in own), default=None),
        }
        for name, own in by_site.items()
    }
    return json.dumps(about | ({"sites": sites} if used else {}), indent=1)
