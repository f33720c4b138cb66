"""`fedcso flower …` and `fedcso check-site` before anything is started: what is written, shown and refused."""

import importlib.util
import json
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from fedcso.cli import main as cli
from fedcso.core.initial_weights import InitialWeights
from tests.command_line import BAD_INPUT, FINE, call

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from cryptography import x509

from fedcso.federation.deploy.deployment import Deployment, supernode_command
from fedcso.federation.deploy.processes import Processes
from fedcso.runs.config import RunConfig
from fedcso.runs.folder import RunFolder
from fedcso.runs.initial_model import FILE

QUADRATIC = ["--problem", "nested_quadratic", "--algorithm", "FCSG-M", "--rounds", 2]


@pytest.fixture
def folder(tmp_path):
    assert call("flower", "init", tmp_path / "trial", *QUADRATIC, "--sites", 3).code == FINE
    return tmp_path / "trial"


def test_init_writes_an_app_that_flower_can_build(folder, monkeypatch):
    monkeypatch.chdir(folder)  # where it puts what it has built
    built = Deployment.open(folder).flwr("build", "--app", str(folder / "app"))
    assert built.returncode == 0, built.stdout + built.stderr
    config = yaml.safe_load((folder / "app/federated/config.yaml").read_text())
    assert (config["sites"], config["clients"], config["algorithm"]) == ("3", 3, ["FCSG-M"])
    for page in ("README.md", "SITE.md"):
        assert "@" not in (folder / page).read_text()


def test_a_network_of_ones_own_goes_into_the_app_and_is_found_there(tmp_path):
    net = tmp_path / "net.py"
    net.write_text("from torch import nn\ndef plain(shape):\n    return nn.Linear(shape.numel(), 1)\n")
    options = ["--problem", "auprc", "--data", "breast_cancer", "--net", f"{net}:plain", "--sites", 3]
    assert call("flower", "init", tmp_path / "own", *options).code == FINE
    app = tmp_path / "own/app/federated"
    assert (app / "own_net.py").read_text() == net.read_text()
    config = yaml.safe_load((app / "config.yaml").read_text())
    assert config["net"] == "own_net.py:plain"
    read = RunConfig.from_flat(config, root=app)
    assert [source.path for source in read.sources()] == [app / "own_net.py"]
    assert read.task().problem.scores.network.module.in_features == 30


def test_initial_weights_stay_with_the_coordinator(tmp_path):
    weights = InitialWeights.of(nn.Sequential(nn.Flatten(), nn.Linear(30, 1)))
    (tmp_path / "net.safetensors").write_bytes(weights.to_bytes())
    options = ["--problem", "auprc", "--data", "breast_cancer", "--net", "linear", "--sites", 3]
    assert call("flower", "init", tmp_path / "own", *options, "--init", tmp_path / "net.safetensors").code == FINE
    (tmp_path / "net.safetensors").unlink()
    app = tmp_path / "own/app/federated"
    config = RunConfig.from_flat(yaml.safe_load((app / "config.yaml").read_text()), root=app)
    assert torch.equal(config.task().start.leaves["1.weight"], weights.leaves["1.weight"])
    folder = RunFolder.create(tmp_path / "runs", "flower", {}, {}, files={FILE: (app / FILE).read_bytes()})
    (app / FILE).unlink()  # Flower does not carry it to where the coordinator's app runs
    assert torch.equal(config.starting_in(folder).task().start.leaves["1.weight"], weights.leaves["1.weight"])


def test_a_problem_of_ones_own_goes_into_the_app(tmp_path):
    options = ["--problem", "examples/own_problem.py:task", "--hospitals", 3, "--sites", 3]
    assert call("flower", "init", tmp_path / "own", *options).code == FINE
    assert (tmp_path / "own/app/federated/own_problem.py").read_text() == Path("examples/own_problem.py").read_text()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--sites", "a,a", *QUADRATIC], "sites"),
        (["--min-sites", 9, *QUADRATIC], "min_sites"),
        (["--aggregate", "mode", *QUADRATIC], "aggregate"),
        (
            ["--rouds", 3, *QUADRATIC],
            "did you mean --rounds? (see: fedcso flower init FOLDER --problem nested_quadratic --help)",
        ),
        (["--problem", "nested_quadratik"], "did you mean nested_quadratic"),
        (
            ["--problem", "examples/own_problem.py:task", "--sites", 3],
            "sites = 3 must be 8, the number of clients of the problem",
        ),
        (["--dp-noise", 1, "--clip-update", 1, "--weights", "size", *QUADRATIC], "weights"),
        (["--send-u", "int4", *QUADRATIC], "send_u"),
        (["--diagnose-every", 2, *QUADRATIC], "diagnose_every"),
        ([], "--problem is missing"),
    ],
)
def test_a_mistake_is_told_before_anything_is_written(tmp_path, options, told):
    outcome = call("flower", "init", tmp_path / "trial", *options)
    assert outcome.code == BAD_INPUT
    assert told in outcome.err
    assert not (tmp_path / "trial").exists()


def test_an_estimator_that_every_site_would_refuse_is_refused_at_once(tmp_path):
    table = ["--problem", "auprc", "--data", "sites", "--label", "y", "--sites", 2]
    refused = {
        "inner_batch = 5": ["--algorithm", "FCSG-M", "--estimator", "v_mlmc", "--inner-batch", 5],
        "tracks the inner value": ["--algorithm", "Local-SCGD", "--estimator", "extrapolated", "--inner-batch", 4],
    }
    for told, options in refused.items():
        for problem in (table, ["--problem", "nested_quadratic", "--sites", 2]):
            outcome = call("flower", "init", tmp_path / "trial", *problem, *options)
            assert outcome.code == BAD_INPUT
            assert told in outcome.err
            assert not (tmp_path / "trial").exists()


OWN = """
from dataclasses import dataclass
from fedcso.algorithms import FCSG

@dataclass(frozen=True)
class Mine(FCSG):
    friction: float = 0.5
"""


def test_a_method_of_ones_own_goes_into_the_app_and_is_found_there(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    method = ["--algorithm", "mine.py:Mine(learning_rate=0.2)", "--friction", 0.25]
    assert call("flower", "init", "own", "--problem", "nested_quadratic", *method, "--sites", 3).code == FINE
    deployment = Deployment.open(Path("own"))
    assert (deployment.package / "own_method0.py").read_text() == OWN
    monkeypatch.chdir("/")
    config = RunConfig.from_flat(deployment.config(), deployment.package)
    ((algorithm, _),) = config.built().values()
    assert (algorithm.learning_rate, algorithm.friction) == (0.2, 0.25)
    assert [method.text for method in config.methods] == ["own_method0.py:Mine(learning_rate=0.2)"]


def test_folders_are_not_overwritten_and_must_be_federations(folder, tmp_path):
    assert "already exists and is not empty" in call("flower", "init", folder, *QUADRATIC).err
    for action in ("up", "down", "run", "keys"):
        outcome = call("flower", action, tmp_path)
        assert outcome.code == BAD_INPUT
        assert "fedcso flower init" in outcome.err
    assert "fedcso flower up" in call("flower", "run", folder).err
    assert call("flower", "down", folder).out == "nothing was running\n"
    assert "did you mean" in call("flower", "ups").err


def test_keys_are_private_and_the_certificate_names_the_host(folder):
    assert call("flower", "keys", folder, "--host", "example.org,192.0.2.7").code == FINE
    keys = Deployment.open(folder).keys
    for secret in ("ca.key", "server.key", "sites/0", "sites/2"):
        assert stat.S_IMODE((keys / secret).stat().st_mode) == 0o600, secret
    certificate = x509.load_pem_x509_certificate((keys / "server.pem").read_bytes())
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate((keys / "ca.crt").read_bytes()))
    names = str(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    assert "example.org" in names
    assert "192.0.2.7" in names
    before = (keys / "sites/0").read_bytes()
    assert call("flower", "keys", folder).code == FINE
    assert (keys / "sites/0").read_bytes() == before  # what is there stays


def test_no_key_is_ever_part_of_the_app(folder):
    call("flower", "keys", folder)
    assert not [path for path in (folder / "app").rglob("*") if path.suffix in (".key", ".pem", ".pub", ".crt")]


@pytest.mark.parametrize("host", ["0.0.0.0", "federation.example.org", "192.0.2.7"])
def test_outside_loopback_nothing_goes_without_tls(folder, host):
    for command in (
        ["flower", "up", folder, "--insecure", "--host", host],
        ["flower", "site", "--insecure", "--superlink", f"{host}:8000", "--name", "0"],
    ):
        outcome = call(*command)
        assert outcome.code == BAD_INPUT
        assert "insecure" in outcome.err
        assert "loopback" in outcome.err
    assert not Deployment.open(folder).processes.alive()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "--superlink is missing"),
        (["--superlink", "host"], "HOST:PORT"),
        (["--superlink", "host:1"], "--name is missing"),
        (["--superlink", "host:1", "--name", "a"], "--ca is missing"),
        (["--superlink", "host:1", "--name", "a", "--ca", "nowhere"], "no file nowhere"),
        (
            ["--superlink", "127.0.0.1:1", "--name", "a", "--insecure", "--data", "nowhere.csv", "--label", "y"],
            "nowhere",
        ),
    ],
)
def test_a_sites_mistakes_are_told(options, told):
    outcome = call("flower", "site", *options)
    assert outcome.code == BAD_INPUT
    assert told in outcome.err


def test_a_sites_command_is_encrypted_and_known_by_key_unless_said_otherwise(tmp_path):
    safe = supernode_command("host:8000", {"site": 'a "b"'}, tmp_path / "ca.crt", tmp_path / "key")
    assert "--insecure" not in safe
    assert {"--root-certificates", "--auth-supernode-private-key"} <= set(safe)
    assert safe[-1] == 'site="a \\"b\\""'


def test_check_site_shows_counts_and_never_rows(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("age,name,y\n" + "".join(f"{30.5 + n},patient {n},{n % 4 == 0:d}\n" for n in range(40)))
    shown = call("check-site", path, "--label", "y")
    assert shown.code == FINE
    assert "40 rows: 24 for training, 8 for validation, 8 for testing." in shown.out
    assert "patient" not in shown.out
    sent = json.loads(call("check-site", path, "--label", "y", "--json").out)
    assert sent["rows"] == 24
    assert "patient" not in json.dumps(sent)
    assert call("check-site", path).code == BAD_INPUT
    assert call("check-site", tmp_path / "none.csv", "--label", "y").code == BAD_INPUT


def test_check_site_says_what_is_told_of_dates_and_warns_of_what_gives_the_label_away(tmp_path):
    path = tmp_path / "my.csv"
    rows = "".join(
        f"{1000 + n};{n % 28 + 1}.{n % 12 + 1}.2020;{'yes' if n % 3 else 'no'};{n % 4 == 0:d};{n % 4 == 0:d}\n"
        for n in range(200)
    )
    path.write_text("patient_id;admitted;smokes;died;y\n" + rows)
    shown = call("check-site", path, "--label", "y", "--drop", "ward").out
    assert "year: mean 2020" in shown
    assert "yes (" in shown
    assert "note    patient_id: looks like an identifier" in shown
    assert "note    died: alone it nearly gives the label" in shown
    assert "note    ward: there is no such column here" in shown
    assert "died" not in call("check-site", path, "--label", "y", "--drop", "died,patient_id").out
    assert "admitted" not in call("check-site", path, "--label", "y", "--columns", "smokes").out
    np.savez(tmp_path / "my.npz", X=np.zeros((20, 1, 8, 8), dtype=np.uint8), y=np.arange(20) % 2)
    assert "pictures of 1×8×8" in call("check-site", tmp_path / "my.npz", "--label", "y").out


def test_only_processes_that_are_still_the_same_are_stopped(tmp_path):
    processes = Processes(tmp_path)
    pid = processes.start("sleeper", ["/bin/sleep", "600"], {})
    record = json.loads(processes.file.read_text())
    processes.file.write_text(json.dumps(record | {"stranger": {"pid": 1, "began": "0"}}))
    assert processes.alive() == {"sleeper": pid}
    assert processes.stop() == ["sleeper"]
    assert processes.alive() == {}


def test_without_flower_the_rest_works_and_the_message_says_how_to_get_it(tmp_path):
    hide = "import sys, importlib.util as u; find = u.find_spec\n"
    hide += "u.find_spec = lambda name, *rest: None if name == 'flwr' else find(name, *rest)\n"
    hide += "sys.modules['flwr'] = None\nfrom fedcso.cli.main import main\n"
    ends = {"['list']": FINE, "['flower', 'up', 'x']": BAD_INPUT, "['check-site', '--help']": FINE}
    for command, code in ends.items():
        outcome = subprocess.run(
            [sys.executable, "-c", f"{hide}sys.exit(main({command}))"], capture_output=True, text=True
        )
        assert outcome.returncode == code, outcome.stderr
    assert importlib.util.find_spec("flwr")
    assert cli.COMMANDS.count("flower") == 1


def test_the_supervisor_starts_again_what_ended_and_ends_with_it(tmp_path):
    from fedcso.federation.deploy.deployment import supervisor_command

    command = supervisor_command(tmp_path, ["/bin/sh", "-c", "echo started; exit 3"])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "started\n"
    assert "starting it again" in process.stderr.readline()
    assert process.stdout.readline() == "started\n"
    process.terminate()
    process.communicate()
    assert process.returncode == 0


def test_help_says_how_init_is_called():
    outcome = call("flower", "init", "--help")
    assert outcome.code == FINE
    assert outcome.out.startswith("usage: fedcso flower init FOLDER --problem PROBLEM [options]")
