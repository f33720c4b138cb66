"""Who is not known by a registered key, or does not speak TLS with the federation's authority, gets nowhere."""

import re
import subprocess
import sys

import pytest

from fedcso.federation.deploy.commands import environment, site_command, supernode_command
from fedcso.federation.deploy.keys import make_authority, make_site_key
from fedcso.federation.deploy.members import update_register
from fedcso.federation.deploy.processes import free_port
from fedcso.federation.sovereignty.approval import approve, files_of_app
from fedcso.federation.sovereignty.writing import write_policy
from tests.command_line import BROKE_OFF, FINE, call
from tests.federation.real.faults import fault
from tests.federation.real.local import outcomes, wait_until

QUADRATIC = ["--problem", "nested_quadratic", "--algorithm", "FCSG-M", "--rounds", 1, "--local-steps", 2, "--sites", 3]
SAYS_SO_WITHIN = 60


def refused(local, tmp_path, authority, key, name="2"):
    """What a SuperNode says that is started so, and the code it ends with (None: it goes on trying)."""
    superlink = f"127.0.0.1:{local.deployment.address()['port']}"
    node = {"site": name, "folder": str(tmp_path / "intruder")}
    command = supernode_command(free_port(), superlink, node, authority, key)
    command += ["--max-retries", "3"]
    said = tmp_path / "intruder.log"
    with said.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment(tmp_path / "flwr-intruder"))
        try:
            code = process.wait(SAYS_SO_WITHIN)
        except subprocess.TimeoutExpired:
            code = None
            process.terminate()
            process.wait()
    return code, said.read_text(errors="replace")


@pytest.mark.federation
def test_only_registered_keys_over_tls_of_the_right_authority_get_in(record_property, start, tmp_path):
    local = start(*QUADRATIC, "--min-sites", 2, "--wait-seconds", 40, sites=2)
    ca, own = local.deployment.keys / "ca.crt", tmp_path / "own-key"
    make_site_key(own)
    make_authority(tmp_path)
    known = local.deployment.site_key("1")
    attempts = {
        "an unregistered key": (ca, own),
        "no key": (ca, None),
        "no TLS": (None, None),
        "another authority": (tmp_path / "ca.crt", known),
    }
    for attempt, (authority, key) in attempts.items():
        code, said = refused(local, tmp_path, authority, key)
        assert code != 0, attempt
        assert "SuperNode ID" not in said, (attempt, said)
        assert re.search(
            "Failed to activate|auth|certificate|SSL|Invalid|denied|40[0-9]|disconnect|refused|closed", said, re.I
        ), said
    folder = local.run()
    assert outcomes(folder, 1) == {"0": "answered", "1": "answered", "2": "not connected"}
    listed = local.deployment.flwr("supernode", "list", "fedcso", "--format", "json").stdout
    assert listed.count('"online"') == 2
    record_property(*fault(f"a node with {' or '.join(attempts)}", "refused by the SuperLink; the others' run went on"))


@pytest.mark.federation
def test_a_node_with_a_name_that_another_has_or_no_one_has_is_turned_away(record_property, start, tmp_path):
    local = start(*QUADRATIC, "--min-sites", 1, "--wait-seconds", 60, sites=1)
    local.deployment.make_keys(["1", "2"])
    update_register(local.deployment)
    for key, name in (("1", "0"), ("2", "nowhere")):
        place = tmp_path / key
        node = {"site": name, "folder": str(place)}
        write_policy(place, local.deployment.policy())
        approve(place, files_of_app(local.deployment.app))
        port = local.deployment.address()["port"]
        keys = local.deployment.keys / "ca.crt", local.deployment.site_key(key)
        command = site_command(place, f"127.0.0.1:{port}", node, *keys)
        local.deployment.processes.start(f"intruder-{key}", command, environment(place / "flwr"))
    online = ("supernode", "list", "fedcso", "--format", "json")
    wait_until(lambda: local.deployment.flwr(*online).stdout.count('"online"') == 3)
    folder = local.run()
    said = (folder.path / "log.txt").read_text()
    assert "another node has the same name" in said
    assert "site nowhere" in said
    assert [site for site, outcome in outcomes(folder, 1).items() if outcome == "answered"] == ["0"]
    record_property(*fault("a node uses another node's name, or a name that is not in the list", "refused and named"))


@pytest.mark.federation
def test_a_changed_app_is_not_run_until_it_is_approved(record_property, start, tmp_path):
    local = start(*QUADRATIC, "--min-sites", 3, "--wait-seconds", 20)
    app = local.deployment.package / "client_app.py"
    app.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n{app.read_text()}")
    folder = local.run(BROKE_OFF)
    assert "can't take part: refused by policy" in (folder.path / "log.txt").read_text()
    assert not (tmp_path / "ran").exists()
    log = (local.deployment.processes.folder / "site-0.log").read_text()
    refused = re.search(r"is not approved; .*fedcso flower approve (\S+) --folder (\S+)", log)
    for site in ("0", "1", "2"):
        assert (
            call("flower", "approve", refused[1], "--folder", local.deployment.site_folder(site), "--yes").code == FINE
        )
    local.resume(folder)
    assert set(outcomes(folder, 1).values()) == {"answered"}
    assert (tmp_path / "ran").exists()
    audited = call("flower", "audit", local.deployment.site_folder("0"))
    assert audited.code == FINE
    assert "refused by policy" in audited.out
    waited = 'no site ran it, and the coordinator was told "refused by policy"; resumed when the sites had approved it'
    record_property(*fault("the coordinator's app has changed", waited))


@pytest.mark.federation
def test_what_goes_over_the_wire_is_encrypted(start, tmp_path):
    local = start(*QUADRATIC, sites=0)
    port = local.deployment.address()["port"]
    ask = "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=10)"
    ask += "; c.request('GET', '/'); print(c.getresponse().status)"
    plain = subprocess.run([sys.executable, "-c", ask, str(port)], capture_output=True, text=True, check=False)
    assert plain.returncode != 0
