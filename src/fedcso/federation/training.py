"""A round of local training at a site: what `train` answers, and what secure aggregation masks."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedcso.core.tree import Tree, to_device
from fedcso.engines.client import Client, local_round
from fedcso.federation.acceptance import REPORTED
from fedcso.federation.memory import Memory
from fedcso.federation.request import Order
from fedcso.federation.site import Site, SiteData
from fedcso.federation.sovereignty.audit import require_budget
from fedcso.federation.sovereignty.protection import Protected


def train(order: Order, tree: Tree, site: Site, app: Path) -> tuple[dict[str, Any], Tree]:
    """Run q local steps from the coordinator's message."""
    return train_on(site.holding(order, app), order, tree, site)


def train_on(holding: SiteData, order: Order, tree: Tree, site: Site) -> tuple[dict[str, Any], Tree]:
    """Run q local steps from the coordinator's message on data that are loaded."""
    require_budget(site.folder, site.policy.update)
    work = site.work(order, holding)
    states, memories = Memory(site.folder, order.run), Memory(site.folder, f"{order.run}/codec")
    local = states.recall(order.remembered)
    counts = work.codec.remembers(order.remembered, order.round)
    memory = memories.recall(order.remembered) if counts else None
    client = Client(holding.number, holding.data, local, memory)
    message = to_device(tree["shared"], site.device)
    started = time.perf_counter()
    protected = Protected(work.codec, site.policy.update, site.notes)
    reply = local_round(replace(work, codec=protected), client, order.round, message, order.output_step)
    seconds = time.perf_counter() - started
    lost = _lost(local, reply.local) or (work.codec.durable and _lost(memory, reply.memory))
    states.keep(order.round, to_device(reply.local, "cpu"), besides=order.remembered)
    memories.keep(order.round, to_device(reply.memory, "cpu"), besides=order.remembered)
    output = None if reply.output is None else protected.protect({"x": reply.output})["x"]
    words = {
        "costs": {name: reply.costs.as_dict()[name] for name in REPORTED},
        "train_loss": None if site.policy.update.noise else reply.train_loss,
        "seconds": seconds,
        "forgot": lost and order.remembered >= 0,
    }
    sent = {"shared": reply.message} | ({} if output is None else {"output": output})
    return words, to_device(sent, "cpu")


def _lost(before: dict[str, Tree] | None, after: dict[str, Tree]) -> bool:
    """Return whether a state that should have been found was missing."""
    return before is None and bool(after)
