"""The gate before the code of an app: a process in which Flower answers messages imports approved apps only.

`guard` puts one step between installing an app and importing it: an app whose digest is not on the site's list is not
imported. Then the site answers "refused by policy", and its log says how to look at the app and approve it. A site's
executor is guarded before it forks the processes that answer messages.
"""

import importlib
import logging
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fedcso.core.errors import FedcsoError
from fedcso.federation.sovereignty.approval import digest, files_of_installed, read_approved
from fedcso.federation.sovereignty.audit import record
from fedcso.federation.sovereignty.policy import REFUSED, Refused
from fedcso.federation.sovereignty.update import Update

log = logging.getLogger("fedcso")


def require_approved(folder: Path, app: Path) -> None:
    """Raise `Refused` unless an installed app is on a site's list."""
    try:
        found, approved = digest(files_of_installed(app)), read_approved(folder)
    except (FedcsoError, OSError) as error:
        raise Refused(f"whether the app in {app} is approved can't be checked: {error}") from error
    if found not in approved:
        look = f"fedcso flower approve {shlex.quote(str(app))} --folder {shlex.quote(str(folder))}"
        raise Refused(f"the app {found[:12]} is not approved; to look at it and decide: {look}")


def guard(folder: Path) -> None:
    """Let Flower import approved apps only, in this process and those that it forks."""
    from flwr.common.config import get_project_dir

    run_clientapp: Any = importlib.import_module("flwr.supernode.runtime.run_clientapp")
    ungated = run_clientapp.get_load_client_app_fn

    def gated(*arguments: Any, **settings: Any) -> Callable[[str, str, str], Any]:
        load = ungated(*arguments, **settings)

        def load_if_approved(fab_id: str, fab_version: str, fab_hash: str) -> Any:
            try:
                require_approved(folder, get_project_dir(fab_id, fab_version, fab_hash))
            except Refused as reason:
                log.warning("%s: %s", REFUSED, reason)
                return partial(_refuse, folder)
            return load(fab_id, fab_version, fab_hash)

        return load_if_approved

    run_clientapp.get_load_client_app_fn = gated
    # No bytecode is written beside an app, nor read from there: only what the digest covers can run.
    sys.dont_write_bytecode = True


def _refuse(folder: Path, message: Any, context: Any) -> Any:
    """Answer a message as an app would that refuses everything."""
    from flwr.app import Message

    from fedcso.federation.wire import outline, pack

    answer = pack({"site": str(context.node_config.get("site", "")), "refused": REFUSED})
    about = {"kind": message.metadata.message_type, "run": str(message.metadata.run_id), "refused": REFUSED}
    try:
        record(folder, about | outline(answer), Update())
    except (Refused, OSError) as reason:  # the refusal says nothing of the site, so it leaves all the same
        log.error("a refusal could not be recorded: %s", reason)
    return Message(answer, reply_to=message)
