"""The port that sites reach serves the fleet only: whoever holds the CA there can't list, register or start."""

import re
import socket
import ssl

import httpx
import pytest

from fedcso.federation.deploy.commands import environment, site_command
from fedcso.federation.deploy.deployment import Deployment, site_process
from fedcso.federation.deploy.keys import make_site_key
from fedcso.federation.sovereignty.approval import approve, files_of_app
from tests.command_line import FINE, call
from tests.federation.real.faults import fault
from tests.federation.real.local import outcomes, wait_until

QUADRATIC = ["--problem", "nested_quadratic", "--algorithm", "FCSG-M", "--rounds", 1, "--local-steps", 2, "--sites", 1]
ELSEWHERE = "127.0.0.2"
"""Another address of this machine: not the one that commands are accepted at."""


@pytest.fixture
def open_to_sites(start):
    """A SuperLink for remote sites, as its coordinator starts it."""
    local = start(*QUADRATIC, "--min-sites", 1, up=False)
    assert call("flower", "keys", local.deployment.folder, "--host", ELSEWHERE).code == FINE
    local.up("--sites", 0, "--host", "0.0.0.0")
    return local


def outsider(local, place, address):
    """Flower's command line with the CA, connected to another address."""
    home = place / "federation" / "flwr"
    home.mkdir(parents=True)
    trust = f'root-certificates = "{local.deployment.keys / "ca.crt"}"'
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "out"\n\n[superlink.out]\naddress = "{address}"\n{trust}\n'
    )
    return Deployment(place).flwr


@pytest.mark.federation
def test_a_holder_of_the_ca_elsewhere_can_do_nothing_and_a_site_can_join(record_property, open_to_sites, tmp_path):
    local, deployment = open_to_sites, open_to_sites.deployment
    port, control = deployment.address()["port"], deployment.address()["control"]
    with socket.socket() as probe:
        assert probe.connect_ex((ELSEWHERE, port)) == 0
    with socket.socket() as probe:
        assert probe.connect_ex((ELSEWHERE, control)) != 0
    make_site_key(tmp_path / "own")
    flwr = outsider(local, tmp_path / "outsider", f"{ELSEWHERE}:{port}")
    attempts = [
        ("supernode", "list", "out"),
        ("supernode", "register", str(tmp_path / "own.pub"), "out"),
        ("run", str(deployment.app), "out"),
        ("list", "out"),
    ]
    for attempt in attempts:
        outcome = flwr(*attempt)
        assert outcome.returncode != 0, (attempt, outcome.stdout)
        assert "404" in outcome.stdout + outcome.stderr, (attempt, outcome.stdout, outcome.stderr)
    listed = deployment.flwr("supernode", "list", "fedcso", "--format", "json")  # the same from the coordinator's place
    assert listed.returncode == 0
    assert listed.stdout.count("node-id") == 1

    place = deployment.site_folder("0")
    approve(place, files_of_app(deployment.app))
    node = {"site": "0", "folder": str(place)}
    command = site_command(place, f"{ELSEWHERE}:{port}", node, deployment.keys / "ca.crt", deployment.site_key("0"))
    deployment.processes.start(site_process("0"), command, environment(place / "flwr"))
    assert outcomes(local.run(), 1) == {"0": "answered"}
    assert len(re.findall('"run-id"', deployment.flwr("list", "fedcso", "--format", "json").stdout)) == 1
    record_property(*fault("a holder of `ca.crt` elsewhere lists, registers or starts", "404; a site can join there"))


@pytest.mark.federation
def test_of_all_paths_of_flower_only_the_fleets_exist_at_the_port_for_sites(open_to_sites):
    deployment = open_to_sites.deployment
    port, control = deployment.address()["port"], deployment.address()["control"]
    trust = ssl.create_default_context(cafile=str(deployment.keys / "ca.crt"))
    with httpx.Client(verify=trust, timeout=60) as client:
        paths = client.get(f"https://127.0.0.1:{control}/openapi.json").json()["paths"]
        assert sum(path.startswith("/v1/control/") for path in paths) > 20
        assert sum(path.startswith("/v1/runtime/") for path in paths) > 5
        for host in ("127.0.0.1", ELSEWHERE):
            for path in [*paths, "/openapi.json", "/docs", "/v1/fleet"]:
                found = client.post(f"https://{host}:{port}{path}").status_code
                assert (found != 404) == path.startswith("/v1/fleet/"), (path, found)
            for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Host"):
                sent = client.post(f"https://{host}:{port}/v1/control/list-nodes", headers={header: "127.0.0.1"})
                assert sent.status_code == 404
            raw = client.build_request("POST", f"https://{host}:{port}/v1/fleet/%2e%2e/control/list-nodes")
            assert client.send(raw).status_code in (404, 405)


@pytest.mark.federation
def test_a_certificate_is_replaced_while_the_superlink_runs(open_to_sites):
    deployment = open_to_sites.deployment
    address = (ELSEWHERE, deployment.address()["port"])
    trust = ssl.create_default_context(cafile=str(deployment.keys / "ca.crt"))

    def presented():
        with socket.create_connection(address) as plain, trust.wrap_socket(plain, server_hostname=ELSEWHERE) as secure:
            return secure.getpeercert()["serialNumber"]

    before = presented()
    assert call("flower", "keys", deployment.folder, "--rotate").code == FINE
    after = wait_until(lambda: (now := presented()) != before and now)
    assert presented() == after
    assert deployment.flwr("supernode", "list", "fedcso").returncode == 0
    refused = call("flower", "keys", deployment.folder, "--rotate", "--authority")
    assert refused.code != FINE
    assert "the federation is running" in refused.err
