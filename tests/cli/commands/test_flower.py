"""`fedcso flower …` and `fedcso check-site` before anything is started: what is written, shown and refused."""

import importlib.util
import json
import stat
import subprocess
import sys
from datetime import date
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
from cryptography.exceptions import InvalidSignature

from fedcso.cli.commands.flower import run as run_command
from fedcso.federation.deploy.commands import supernode_command
from fedcso.federation.deploy.deployment import Deployment
from fedcso.federation.deploy.keys import make_site_key
from fedcso.federation.deploy.processes import Processes
from fedcso.federation.options import COORDINATOR_ONLY
from fedcso.federation.sovereignty.policy import MESSAGES, Request, read_policy, refusal
from fedcso.fitting.objectives import OBJECTIVES
from fedcso.runs.config import RunConfig
from fedcso.runs.folder import RunFolder
from fedcso.runs.initial_model import FILE
from tests.fitting.test_chosen import fit_folder, tried

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


# --------------------------------------------------------------------------------------- from a fit


def init_from(tmp_path, fit, *options):
    outcome = call("flower", "init", tmp_path / "sites", "--from", fit, "--sites", "berlin,oslo", *options)
    path = tmp_path / "sites/app/federated/config.yaml"
    return outcome, yaml.safe_load(path.read_text()) if path.is_file() else {}


def test_init_takes_what_a_fit_has_chosen_to_sites_with_tables(tmp_path):
    fit = fit_folder(tmp_path, tried("auprc_after_weighted", 0.81, 0.1), tried("auprc", 0.78))
    outcome, config = init_from(tmp_path, fit)
    assert outcome.code == FINE, outcome.err
    assert "note     The chosen model minimises two objectives" in outcome.out
    assert (config["problem"], config["data"], config["label"], config["drop"]) == (
        "auprc",
        "sites",
        "ill",
        "name,hospital",
    )
    assert (config["sigmoid"], config["rounds"], config["seeds"], config["sites"]) == (False, 20, [0], "berlin,oslo")
    assert "prevalence" not in config  # the fit trained for that of the data; the other is what thresholds are for
    wanted = {"precision": 0.5, "recall": 0.8, "alerts": None, "rows": 100, "prevalence": 0.02}
    assert config["thresholds"] == wanted
    built = RunConfig.from_flat(config).built()["FCSG-M"].algorithm
    assert built == OBJECTIVES["auprc"].algorithm(0.3, 200)


def test_options_come_before_what_the_fit_has_chosen(tmp_path):
    fit = fit_folder(tmp_path, tried("auprc", 0.78))
    options = ["--rounds", 7, "--learning-rate", 0.25, "--label", "sick", "--prevalence", 0.1, "--problem", "auprc"]
    outcome, config = init_from(tmp_path, fit, *options)
    assert outcome.code == FINE, outcome.err
    assert (config["rounds"], config["label"], config["prevalence"]) == (7, "sick", 0.1)
    assert config["thresholds"]["prevalence"] == 0.02
    built = RunConfig.from_flat(config).built()["FCSG-M"].algorithm
    assert (built.learning_rate, built.momentum) == (0.25, 0.3)


def test_another_method_comes_without_the_chosen_ones_hyper_parameters(tmp_path):
    fit = fit_folder(tmp_path, tried("auprc", 0.78))
    outcome, config = init_from(tmp_path, fit, "--algorithm", "FCSG(learning_rate=0.2)")
    assert outcome.code == FINE, outcome.err
    assert config["algorithm"] == ["FCSG(learning_rate=0.2)"]
    assert "momentum" not in config


def test_what_can_not_be_taken_from_a_fit_is_told(tmp_path):
    fit = fit_folder(tmp_path, tried("auprc", 0.78))
    begun = fit_folder(tmp_path, status="interrupted")
    for options, told in {
        (fit, "--problem", "auroc"): "problem = 'auroc' must be auprc, as the fit has chosen",
        (begun,): f"is not finished (interrupted); continue it with: fedcso resume {begun}",
        (tmp_path,): "is not a run folder",
        (tmp_path / "nowhere",): "is not a run folder",
        (fit, "--rouds", 3): "unknown option --rouds; did you mean --rounds?",
    }.items():
        outcome, config = init_from(tmp_path, *options)
        assert outcome.code == BAD_INPUT
        assert told in outcome.err
        assert not config
    outcome = call("flower", "init", tmp_path / "sites", "--from")
    assert "--from is given without a value" in outcome.err


def test_what_thresholds_should_achieve_is_checked_before_a_run_and_kept_with_it(folder, monkeypatch):
    (folder / "federation").mkdir()
    (folder / "federation/address.json").write_text(json.dumps({"host": "127.0.0.1", "port": 1, "secure": True}))
    outcome = call("flower", "run", folder, "--precision", 2)
    assert outcome.code == BAD_INPUT
    assert "precision = 2.0 must be" in outcome.err
    assert not (folder / "runs").exists()
    started = []
    monkeypatch.setattr(run_command, "follow", lambda deployment, made: started.append(made.config()) or FINE)
    assert call("flower", "run", folder, "--alerts", 5, "--recall", "null").code == FINE
    wanted = {"precision": None, "recall": None, "alerts": 5, "rows": 100, "prevalence": None}
    assert started[0]["thresholds"] == wanted
    path = folder / "app/federated/config.yaml"
    for written in ({"precison": 0.5}, [0.5], "high"):
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"thresholds": written}))
        outcome = call("flower", "run", folder)
        assert outcome.code == BAD_INPUT
        assert "must be numbers by name, of precision, recall" in outcome.err


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


ESTIMATOR = """
from fedcso import Estimator


@Estimator
def twice(problem, x, batch):
    return 2 * problem.outer(problem.inner(x, batch.xi, batch.eta), batch.xi)
"""


def test_an_estimator_of_ones_own_goes_into_the_app_and_is_found_there(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(ESTIMATOR)
    monkeypatch.chdir(tmp_path)
    options = ["--problem", "nested_quadratic", "--estimator", "mine.py:twice", "--sites", 3]
    assert call("flower", "init", "own", *options).code == FINE
    deployment = Deployment.open(Path("own"))
    assert (deployment.package / "own_estimator.py").read_text() == ESTIMATOR
    monkeypatch.chdir("/")
    config = RunConfig.from_flat(deployment.config(), deployment.package)
    assert config.estimator == "own_estimator.py:twice"
    assert config.find_estimator().losses.__name__ == "twice"


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


# --------------------------------------------------------------------------------------- the sites' policies


def test_init_writes_policies_that_allow_what_is_configured_and_nothing_else(folder):
    settings = Deployment.open(folder).config()
    for name in ("0", "1", "2"):
        policy = read_policy(folder / "sites" / name)
        sent = {key: value for key, value in settings.items() if key not in COORDINATOR_ONLY}
        for kind in MESSAGES:
            assert refusal(policy, Request(kind, sent, {}, "FCSG-M", 1), date.today()) == ""
        assert refusal(policy, Request("train", sent | {"problem": "auprc"}, {}), date.today())


def test_a_site_writes_its_policy_for_the_coordinators_app_once(folder, tmp_path):
    (tmp_path / "my.csv").write_text("a,y\n1,0\n")
    options = ["--init", "--app", folder / "app", "--folder", tmp_path / "state", "--data", tmp_path / "my.csv"]
    assert call("flower", "site", *options, "--columns", "a").code == FINE
    policy = read_policy(tmp_path / "state")
    assert (policy.problems, policy.max_rounds, policy.columns) == (("nested_quadratic",), 2, ("a",))
    assert policy.tables == (str(tmp_path / "my.csv"),)
    again = call("flower", "site", *options)
    assert again.code == BAD_INPUT
    assert "already exists; edit it" in again.err
    closed = call("flower", "site", "--init", "--folder", tmp_path / "other")
    assert "it allows nothing yet" in closed.out
    assert read_policy(tmp_path / "other").messages == ()
    nowhere = call("flower", "site", "--init", "--app", tmp_path, "--folder", tmp_path / "third")
    assert nowhere.code == BAD_INPUT
    assert not (tmp_path / "third").exists()


def test_a_site_without_a_policy_does_not_connect(tmp_path):
    options = ["--superlink", "127.0.0.1:1", "--name", "a", "--insecure", "--folder", tmp_path / "none"]
    outcome = call("flower", "site", *options)
    assert outcome.code == BAD_INPUT
    assert "there is no policy" in outcome.err
    assert "fedcso flower site --init" in outcome.err


def test_a_sites_command_is_encrypted_and_known_by_key_unless_said_otherwise(tmp_path):
    safe = supernode_command(9094, "host:8000", {"site": 'a "b"'}, tmp_path / "ca.crt", tmp_path / "key")
    assert "--insecure" not in safe
    assert {"--root-certificates", "--auth-supernode-private-key"} <= set(safe)
    assert safe[-1] == 'site="a \\"b\\""'


def test_check_site_shows_counts_and_never_rows(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("age,name,y\n" + "".join(f"{30.5 + n},patient {n},{n % 4 == 0:d}\n" for n in range(40)))
    few = call("check-site", path, "--label", "y")
    assert few.code == BAD_INPUT
    assert "the table has 6 training positives, fewer than smallest_count = 10" in few.err
    shown = call("check-site", path, "--label", "y", "--smallest-count", 5)
    assert shown.code == FINE
    assert "40 rows: 24 for training, 8 for validation, 8 for testing." in shown.out
    assert "patient" not in shown.out
    sent = json.loads(call("check-site", path, "--label", "y", "--json", "--smallest-count", 5).out)
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
    assert "pictures of 1×8×8" in call("check-site", tmp_path / "my.npz", "--label", "y", "--smallest-count", 5).out


def test_only_processes_that_are_still_the_same_are_stopped(tmp_path):
    processes = Processes(tmp_path)
    pid = processes.start("sleeper", ["/bin/sleep", "600"], {})
    record = json.loads(processes.file.read_text())
    processes.file.write_text(json.dumps(record | {"stranger": {"pid": 1, "began": "0"}}))
    assert processes.alive() == {"sleeper": pid}
    assert processes.stop() == ["sleeper"]
    assert processes.alive() == {}


WITHOUT_FLOWER = """
import importlib.util, json, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "flwr" else find(name, *rest)
sys.modules["flwr"] = None
from fedcso.cli.main import main

def code(*command):
    try:
        return main(list(command))
    except SystemExit as leaving:  # as --help does
        return leaving.code

print(json.dumps([code("list"), code("flower", "up", "x"), code("check-site", "--help")]))
"""


def test_without_flower_the_rest_works_and_the_message_says_how_to_get_it():
    outcome = subprocess.run([sys.executable, "-c", WITHOUT_FLOWER], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert json.loads(outcome.stdout.splitlines()[-1]) == [FINE, BAD_INPUT, FINE]
    assert "pip install 'fedcso[flower]'" in outcome.stderr
    assert importlib.util.find_spec("flwr")
    assert "flower" in cli.COMMANDS


def test_help_says_how_init_is_called():
    outcome = call("flower", "init", "--help")
    assert outcome.code == FINE
    assert outcome.out.startswith("usage: fedcso flower init FOLDER --problem PROBLEM [options]")


# --------------------------------------------------------------------------------------- replacing keys


def names_of(certificate):
    read = x509.load_pem_x509_certificate(certificate.read_bytes())
    return [str(one.value) for one in read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value], read


def test_the_coordinators_certificate_is_replaced_under_the_same_names_and_authority(folder):
    assert call("flower", "keys", folder, "--host", "federation.example.org,192.0.2.7").code == FINE
    keys = folder / "keys"
    (names, before), key, authority = names_of(keys / "server.pem"), (keys / "server.key").read_bytes(), keys / "ca.crt"
    signed = x509.load_pem_x509_certificate(authority.read_bytes())
    assert call("flower", "keys", folder, "--rotate").code == FINE
    again, after = names_of(keys / "server.pem")
    assert again == names
    assert {"federation.example.org", "192.0.2.7"} <= set(again)
    assert after.serial_number != before.serial_number
    assert (keys / "server.key").read_bytes() != key
    after.verify_directly_issued_by(signed)
    assert call("flower", "keys", folder, "--rotate", "--authority").code == FINE
    assert names_of(keys / "server.pem")[0] == names
    after.verify_directly_issued_by(signed)
    with pytest.raises(InvalidSignature):  # who trusts the new authority only refuses the old certificate
        after.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.read_bytes()))


def test_a_sites_key_is_replaced_by_one_of_the_sites_own(folder, tmp_path):
    assert call("flower", "keys", folder).code == FINE
    deployment = Deployment.open(folder)
    make_site_key(tmp_path / "new")
    before = deployment.public_key("1").read_bytes()
    assert call("flower", "keys", folder, "--rotate", "--site", "0").code == FINE
    options = ["--rotate", "--site", "1", "--public-key", tmp_path / "new.pub"]
    assert call("flower", "keys", folder, *options).code == FINE
    assert deployment.public_key("1").read_bytes() == (tmp_path / "new.pub").read_bytes() != before
    assert not deployment.site_key("1").exists()
    refused = call("flower", "keys", folder, "--rotate", "--site", "1")
    assert refused.code == BAD_INPUT
    assert "site 1 has its key at its own place; give its new public key with --public-key FILE" in refused.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--rotate", "--site", "9"], "unknown site '9'"),
        (["--rotate", "--public-key", "x.pub"], "name the site with --site"),
        (["--site", "1"], "--site replaces something; add --rotate"),
        (["--rotate", "--site", "1", "--public-key", "README.md"], "README.md is not a public key"),
        (["--rotate", "--site", "1", "--public-key", "nowhere.pub"], "nowhere.pub is not a public key"),
        (["--rotate"], "server.pem does not exist; create it with: fedcso flower keys"),
    ],
)
def test_a_key_that_can_not_be_replaced_is_told(folder, options, told):
    outcome = call("flower", "keys", folder, *options)
    assert outcome.code == BAD_INPUT
    assert told in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_removed_site_is_known_no_longer_and_gets_no_new_key_by_itself(folder):
    assert call("flower", "keys", folder).code == FINE
    deployment = Deployment.open(folder)
    removed = call("flower", "remove", folder, "1")
    assert removed.code == FINE
    assert "Left: 0, 2" in removed.out
    assert deployment.known_sites() == ["0", "2"]
    assert not deployment.site_key("1").exists()
    again = call("flower", "remove", folder, "1")
    assert again.code == BAD_INPUT
    assert "unknown site '1'" in again.err
    few = call("flower", "remove", folder, "0")
    assert "rounds need 2 sites" in few.out
    assert call("flower", "keys", folder, "--rotate", "--site", "1").code == FINE  # let in again, with another key
    assert deployment.known_sites() == ["1", "2"]
    assert not deployment.removed_key("1").exists()
