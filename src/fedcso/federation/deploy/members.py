"""Who may connect to a SuperLink: the sites whose public keys are in keys/sites, and nobody else.

The SuperLink has a register of its own in its database, which is made equal to the folder when it starts and after each
change. It accepts a key that was once removed never again.
"""

import shutil
from pathlib import Path

import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest, UnregisterNodeRequest
from flwr.supercore.constant import NodeStatus
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.federation.deploy.commands import as_address
from fedcso.federation.deploy.deployment import CONTROL_HOST, SUPERLINK, Deployment, site_process
from fedcso.federation.deploy.keys import make_site_key


def update_register(deployment: Deployment) -> None:
    """Let the running SuperLink accept the keys in keys/sites, and no others."""
    wanted = {read_public_key(deployment.public_key(site)): site for site in deployment.known_sites()}
    version = RuntimeVersionHttpInterceptor(component_name="flwr CLI")
    address, authority = deployment.address(), deployment.keys / "ca.crt"
    control = ControlHttpClient.from_server_address(
        as_address(CONTROL_HOST, address["control"]),
        not address["secure"],
        authority.read_bytes() if address["secure"] else None,
        interceptors=[version],
    )
    try:
        nodes = control.ListNodes(ListNodesRequest()).nodes_info
        known = {node.public_key: node for node in nodes if node.status != NodeStatus.UNREGISTERED}
        for key, node in known.items():
            if key not in wanted:
                control.UnregisterNode(UnregisterNodeRequest(node_id=node.node_id))
        for key, site in wanted.items():
            if key not in known:
                _register(control, key, site)
    except httpx.TransportError as error:
        raise FedcsoError(f"the SuperLink does not answer at {as_address(CONTROL_HOST, address['control'])}") from error
    finally:
        control.close()


def _register(control: ControlHttpClient, key: bytes, site: str) -> None:
    try:
        control.RegisterNode(RegisterNodeRequest(public_key=key))
    except httpx.HTTPStatusError as error:
        raise FedcsoError(
            f"the SuperLink does not accept the key of site {site}: it was removed or replaced before; the site "
            "needs a new one, which is given with: fedcso flower keys FOLDER --rotate --site NAME --public-key FILE"
        ) from error


def replace_key(deployment: Deployment, site: str, public: Path | None) -> None:
    """Accept another key of a site, and its old one no longer; restart the site if it runs on this machine.

    The other sites on this machine are told the new key; those elsewhere must be told by people.

    Args:
        deployment: the federation
        site: a site that is known or was removed
        public: the new public key; None to make a key here, as in a trial
    """
    if public is None and not deployment.site_key(site).is_file() and deployment.public_key(site).is_file():
        raise FedcsoError(f"site {site} has its key at its own place; give its new public key with --public-key FILE")
    if public is None:
        make_site_key(deployment.site_key(site))
    else:
        read_public_key(public)  # raises if it is none
        deployment.public_key(site).parent.mkdir(parents=True, exist_ok=True)
        atomic.write(deployment.public_key(site), public.read_bytes())
        deployment.site_key(site).unlink(missing_ok=True)
    deployment.removed_key(site).unlink(missing_ok=True)
    running = deployment.processes.alive()
    if SUPERLINK in running:
        update_register(deployment)
    for other in deployment.known_sites():
        if site_process(other) in running:
            deployment.introduce(other)
    if public is None and site_process(site) in running:
        deployment.processes.stop([site_process(site)])
        deployment.start_site(site)


def remove(deployment: Deployment, site: str) -> None:
    """Accept a site no longer, and stop it if it runs on this machine; a run goes on with the others."""
    if site not in deployment.known_sites():
        raise UnknownName("site", site, deployment.known_sites())
    deployment.removed_key(site).parent.mkdir(parents=True, exist_ok=True)
    shutil.move(deployment.public_key(site), deployment.removed_key(site))
    deployment.site_key(site).unlink(missing_ok=True)
    if SUPERLINK in deployment.processes.alive():
        update_register(deployment)
    deployment.processes.stop([site_process(site)])


def read_public_key(path: Path) -> bytes:
    """Return a site's public key as the SuperLink knows it; raise `FedcsoError` if the file holds none."""
    try:
        key = serialization.load_ssh_public_key(path.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise FedcsoError(f"{path} is not a public key; make one with: ssh-keygen -t ecdsa -b 384") from error
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise FedcsoError(f"{path} is a key of another kind; make one with: ssh-keygen -t ecdsa -b 384")
    return public_key_to_bytes(key)
