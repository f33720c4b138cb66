"""The site's part: answer requests. What leaves a site is `shared`, counts and metrics; never rows.

Errors are told to the site's own log in full, and to the coordinator only by their kind: their words may hold data.
"""

import logging
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fedcso.core.codec import MissingMemory
from fedcso.core.errors import FedcsoError, NonFinite, UnknownName
from fedcso.core.tree import Tree, to_device
from fedcso.datasets.examples import Examples
from fedcso.federation.counting import count_parts
from fedcso.federation.errors import Tellable
from fedcso.federation.request import COUNTS, Order
from fedcso.federation.secure.answers import SECURE
from fedcso.federation.site import COLUMNS, Site
from fedcso.federation.sovereignty.audit import record
from fedcso.federation.sovereignty.policy import REFUSED, Refused, read_policy
from fedcso.federation.sovereignty.withholding import without_small_counts
from fedcso.federation.training import train
from fedcso.federation.wire import outline, pack, unpack

log = logging.getLogger("fedcso")

Answer = tuple[dict[str, Any], Tree]
Handler = Callable[[Order, Tree, Site, Path], Answer]


def client_app(app: Path) -> ClientApp:
    """Return the ClientApp of the app in the folder `app`."""
    flower = ClientApp()
    flower.query()(_answering(describe, app))
    flower.train()(_answering(train, app))
    flower.evaluate()(_answering(evaluate, app))
    flower.evaluate(COUNTS.partition(".")[2])(_answering(count, app))
    for answer in SECURE:
        flower.train(answer.__name__)(_answering(answer, app))
    return flower


def describe(order: Order, tree: Tree, site: Site, app: Path) -> Answer:
    """Describe the site and its data; before sites have agreed on how to prepare tables, describe its table."""
    number = site.number(order)
    if "data" in site.own and not order.agreement and "agreement" in order.config:
        from fedcso.datasets.tables.describe import describe_table  # imported here because pandas loads slowly

        columns = {key: str(order.config[key]) for key in COLUMNS if order.config.get(key)}
        seed, smallest = int(order.config["data_seed"]), site.policy.smallest_count
        described = describe_table(**(columns | site.own), seed=seed, place=number, fewest=smallest)
        table = without_small_counts(described.description.as_json(), smallest)
        return {"number": number, "table": table}, ()
    holding = site.holding(order, app)
    size = holding.problem.size(holding.data)
    if size is not None and 0 < size < site.policy.smallest_count:
        raise Refused(f"the {size} training rows are fewer than smallest_count = {site.policy.smallest_count}")
    about = {
        "size": size,
        "trains": holding.problem.trains(holding.data),
        "tests": _measurable(holding.test, site) is not None,
        "validates": _measurable(holding.validation, site) is not None,
    }
    return {"number": number} | about, ()


def _measurable(data: Any, site: Site) -> Any:
    """Return held-out data of which metrics may leave the site, or None: not of a table with too few rows."""
    too_few = isinstance(data, Examples) and len(data.labels) < site.policy.smallest_count
    return None if too_few else data


def evaluate(order: Order, tree: Tree, site: Site, app: Path) -> Answer:
    """Measure the model on this site's test and validation data, if it has any."""
    holding = site.holding(order, app)
    x = to_device(tree["x"], site.device)
    with torch.no_grad():
        parts = (_measurable(data, site) for data in (holding.test, holding.validation))
        tested, validated = (holding.judge.measure(x, data) for data in parts)
    return {"metrics": _numbers(tested), "validation": _numbers(validated)}, ()


def count(order: Order, tree: Tree, site: Site, app: Path) -> Answer:
    """Count this site's validation and test rows by the model's scores; parts with too few rows are not counted."""
    holding = site.holding(order, app)
    if holding.judge.rank is None:
        raise FedcsoError("the problem does not rank rows, so there are no scores to count")
    x = to_device(tree["x"], site.device)
    parts = {"validation": holding.validation, "test": holding.test}
    return count_parts(holding.judge, x, parts, site.policy.smallest_count)


def _numbers(metrics: dict[str, Any]) -> dict[str, float | None]:
    """Return metrics for JSON: None where one is undefined."""
    numbers = {name: float(value) for name, value in metrics.items()}
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}


def _answering(handler: Handler, app: Path) -> Callable[[Message, Context], Message]:
    """Wrap a handler for Flower."""

    def answer(message: Message, context: Context) -> Message:
        return Message(respond(handler, message.content, context.node_config, app), reply_to=message)

    return answer


def respond(handler: Handler, content: RecordDict, node_config: Mapping[str, Any], app: Path) -> RecordDict:
    """Return the answer to a message; errors are answered, too."""
    site, order = None, None
    try:
        site = Site.of(node_config)
        words, tree = unpack(content)
        order = Order.read(words)
        site = site.under(read_policy(site.folder), handler.__name__, order)
        with _at_most(order.seconds):
            said, sent = handler(order, tree, site, app)
    except Refused as reason:
        log.warning("%s: %s", REFUSED, reason)
        said, sent = {"refused": REFUSED}, ()
    except Exception as error:  # a user's data or problem may raise anything
        log.exception("this site can't answer")
        said, sent = {"refused": _reason(error), "forgot": isinstance(error, MissingMemory)}, ()
    answer = pack({"site": site.name if site else "", **said}, sent)
    return answer if site is None else _recorded(answer, site, handler.__name__, order, said.get("refused", ""))


def _recorded(answer: RecordDict, site: Site, kind: str, order: Order | None, refused: str) -> RecordDict:
    """Return an answer after it has been added to the site's record; what can't be recorded does not leave."""
    asked = {"run": order.run, "round": order.round} if order else {}
    how = {"refused": refused} if refused else site.notes
    try:
        record(site.folder, {"kind": kind, **asked, **how, **outline(answer)}, site.policy.update)
    except (Refused, OSError) as reason:
        log.error("%s: %s", REFUSED, reason)
        return pack({"site": site.name, "refused": REFUSED})
    return answer


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """End this process when its answer would be too late, so that a hanging site can take part in later rounds."""
    timer = threading.Timer(seconds, os._exit, [1])
    timer.daemon = True
    if seconds:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _reason(error: Exception) -> str:
    """Return what the coordinator may be told about an error: no text that could contain data."""
    if isinstance(error, NonFinite):
        return f"non-finite {error.quantity} at step {error.step}"
    if isinstance(error, MissingMemory):
        return "it has lost what it remembered of the last round"
    if isinstance(error, UnknownName):
        return "it has a name that is asked for nowhere, or lacks one that is; its own log says which"
    if isinstance(error, Tellable):
        return str(error)
    return f"it raised {type(error).__name__}; its own log says why"
