"""Client-level (ε, δ)-differential privacy of a run with noise, computed by an accountant.

Every round releases the mean of clipped updates with Gaussian noise of z times what one site can contribute. Rényi
differential privacy adds up over rounds (Google's dp-accounting, through Flower's accountant). Neighbours are runs with
and without one site's updates. Taking part in only some rounds is not counted as a gain: the sites know the seed.
"""

import json
from collections.abc import Iterable

from flwr.serverapp import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    RdpAccountant,
    SamplingMethod,
)

from fedcso.core.trace import Trace
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


def statement(federation: Federation, traces: Iterable[Trace]) -> str:
    """Return the privacy spent by all methods and seeds of a run together, as JSON."""
    rounds = sum(trace.costs.rounds for trace in traces)
    spent = epsilon(federation.dp_noise, rounds, len(federation.names), federation.dp_delta)
    about = {"epsilon": spent, "delta": federation.dp_delta, "rounds": rounds, "noise_multiplier": federation.dp_noise}
    return json.dumps(about | {"clip_update": federation.clip_update}, indent=1)
