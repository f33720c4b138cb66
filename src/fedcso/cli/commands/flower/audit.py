"""Verify the record of everything that a site has sent, and sum it up.

The record is sent.jsonl in the folder of the site, with a line for each message. Each line has the hash of the line
before: changed and removed lines are found, and the command then ends with exit code 1.

examples:
  fedcso flower audit site-state
  fedcso flower audit site-state --head 3f2a…     also that the line that was the last one at an earlier audit is there
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedcso.core.errors import FedcsoError
from fedcso.federation.sovereignty.audit import FILE, faults, messages_in, read_head
from fedcso.federation.sovereignty.policy import Policy, Refused, read_policy
from fedcso.federation.sovereignty.update import epsilon
from fedcso.reports.terminal import FAILED, show
from fedcso.runs.parser import simple_parser

Messages = Sequence[dict[str, Any]]


def main(arguments: list[str]) -> int:
    """Print a summary and all faults."""
    parser = simple_parser("flower audit", str(__doc__))
    parser.add_argument("folder", help="the folder of the site")
    parser.add_argument("--head", default="", help="the hash of the last line at an earlier audit")
    options = parser.parse_args(arguments)
    folder = Path(options.folder)
    found, head = faults(folder, options.head), read_head(folder)
    if not (folder / FILE).is_file() and not found:
        raise FedcsoError(f"{folder / FILE} does not exist: this site has sent nothing, or it is not a site's folder")
    messages = messages_in(folder)
    _summarise(messages, _delta(folder))
    for fault in found:
        print(f"FAULT    {fault}")
    if found:
        return FAILED
    print(f"verified {len(messages)} messages; no line was changed or removed")
    print(f"head     {head.hash if head else ''}   (write it down elsewhere, and give it with --head later)")
    return 0


def _delta(folder: Path) -> float:
    try:
        return read_policy(folder).update.delta
    except Refused:
        return Policy().update.delta


def _summarise(messages: Messages, delta: float) -> None:
    if messages:
        print(f"from     {messages[0].get('time')} to {messages[-1].get('time')}")
    rows = []
    for kind in dict.fromkeys(str(message.get("kind")) for message in messages):
        some = [message for message in messages if str(message.get("kind")) == kind]
        refused = [message for message in some if message.get("refused")]
        rows.append(
            {
                "kind": kind,
                "sent": str(len(some) - len(refused)),
                "refused or failed": str(len(refused)),
                "bytes": str(sum(int(message.get("bytes", 0)) for message in some)),
                "runs": str(len({message.get("run") for message in some} - {"", None})),
            }
        )
    show(rows)
    for reason, count in Counter(message["refused"] for message in messages if message.get("refused")).items():
        print(f"told     {count} × {reason}")
    updates = [update for message in messages for update in message.get("updates", [])]
    if updates:
        _account(updates, float(messages[-1].get("spent", 0)), delta)


def _account(updates: Messages, spent: float, delta: float) -> None:
    before, after = (max(update[name] for update in updates) for name in ("norm", "clipped"))
    print(f"updates  {len(updates)}; the largest norm was {before:.4g} before clipping and {after:.4g} after")
    bare = sum(not update["noise"] for update in updates)
    if bare:
        print(f"noise    {bare} updates left without noise, so no ε holds for this site's updates together")
        return
    alone = sum((2 * update["clip"] / update["noise"]) ** 2 for update in updates)
    print(f"privacy  ε = {epsilon(alone, delta):.3g} at δ = {delta:g} for whoever sees each update of this site")
    if spent < 0.999 * alone:
        print(f"         ε = {epsilon(spent, delta):.3g} for whoever sees only sums with the noise of the other sites")
    print("         for any change of this site's rows; descriptions, metrics and counts have no noise")
