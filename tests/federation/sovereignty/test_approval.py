"""A site imports an app only if what Flower has installed is what was approved, byte for byte."""

import hashlib
import importlib
import io
import json
import os
import shutil
import sys
import zipfile

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from flwr.cli.install import install_from_fab
from flwr.supernode.runtime import run_clientapp

from fedcso.core.errors import FedcsoError
from fedcso.federation.deploy.commands import EXECUTOR_PROGRAM, site_command
from fedcso.federation.sovereignty import gate
from fedcso.federation.sovereignty.approval import (
    approve,
    build,
    changes,
    digest,
    files_of_app,
    files_of_installed,
    read_approved,
)
from fedcso.federation.sovereignty.policy import Refused
from tests.command_line import BAD_INPUT, FINE, call

APP = """[project]
name = "federated"
version = "1.0.0"   # a comment, which Flower drops
description = "for a test"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "fedcso"

[tool.flwr.app.components]
serverapp = "federated.client_app:app"
clientapp = "federated.client_app:app"
"""
CODE = "import os\nfrom flwr.clientapp import ClientApp\nos.environ['IMPORTED'] = 'yes'\napp = ClientApp()\n"


@pytest.fixture
def app(tmp_path):
    package = tmp_path / "app" / "federated"
    package.mkdir(parents=True)
    (tmp_path / "app" / "pyproject.toml").write_text(APP)
    (package / "__init__.py").write_text("")
    (package / "client_app.py").write_text(CODE)
    (package / "config.yaml").write_text("rounds: 5\n")
    return tmp_path / "app"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site's folder, with Flower's files in it and the gate in this process."""
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "site" / "flwr"))
    monkeypatch.setattr(run_clientapp, "get_load_client_app_fn", run_clientapp.get_load_client_app_fn)
    monkeypatch.delenv("IMPORTED", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    gate.guard(tmp_path / "site")
    yield tmp_path / "site"
    for name in [name for name in sys.modules if name.partition(".")[0] == "federated"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def load(fab):
    """Install and load an app as Flower's process does for a message."""
    install_from_fab(fab, skip_prompt=True)
    return run_clientapp.get_load_client_app_fn(default_app_ref="", app_path=None, multi_app=True)(
        "fedcso/federated", "1.0.0", hashlib.sha256(fab).hexdigest()
    )


def refuses(loaded):
    """True if not the app was loaded, but what answers in its place."""
    return getattr(loaded, "func", None) is gate._refuse


def with_file(fab, name, content):
    """The app with one more file, packed by hand: Flower would not pack it."""
    changed = io.BytesIO(fab)
    with zipfile.ZipFile(changed, "a") as archive:
        archive.writestr(name, content)
    return changed.getvalue()


def test_an_approved_app_is_imported_and_another_is_not(app, site):
    assert refuses(load(build(app)))
    assert "IMPORTED" not in os.environ
    approve(site, files_of_app(app))
    assert not refuses(load(build(app)))
    assert os.environ["IMPORTED"] == "yes"


@pytest.mark.parametrize(
    "name", ["federated/evil.py", "federated/__pycache__/client_app.cpython-311.pyc", "sitecustomize.py"]
)
def test_a_file_that_was_not_there_when_the_app_was_approved_keeps_it_from_being_imported(app, site, name):
    approve(site, files_of_app(app))
    assert refuses(load(with_file(build(app), name, b"x = 1")))
    assert "IMPORTED" not in os.environ


def test_a_changed_file_needs_approval_and_changed_settings_do_not(app, site):
    approve(site, files_of_app(app))
    (app / "federated" / "config.yaml").write_text("rounds: 6\n")
    assert not refuses(load(build(app)))
    (app / "federated" / "client_app.py").write_text(CODE + "x = 1\n")
    assert refuses(load(build(app)))
    assert changes(site, files_of_app(app)) == {"federated/client_app.py": "changed"}
    (app / "federated" / "client_app.py").rename(app / "federated" / "other.py")
    assert changes(site, files_of_app(app)) == {
        "federated/client_app.py": "removed",
        "federated/other.py": "new",
    }


def test_the_digest_is_that_of_what_flower_installs(app, tmp_path):
    installed = install_from_fab(build(app), tmp_path, skip_prompt=True)
    assert digest(files_of_installed(installed)) == digest(files_of_app(app))


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 3}', '{"a": {"when": 1}}'])
def test_a_list_that_cant_be_read_approves_nothing(app, site, content):
    approve(site, files_of_app(app))
    (site / "approved.json").write_text(content)
    assert refuses(load(build(app)))


def test_an_app_that_cant_be_read_is_refused(site, app, tmp_path):
    shutil.copytree(app, tmp_path / "installed")
    (tmp_path / "installed" / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Refused, match="can't be checked"):
        gate.require_approved(site, tmp_path / "installed")


def test_a_sites_executor_is_told_whose_list_to_read(tmp_path):
    command = site_command(tmp_path, "127.0.0.1:9000", {"site": "a"}, None, None)
    program, arguments = command[: -len(EXECUTOR_PROGRAM) - 2], command[-len(EXECUTOR_PROGRAM) - 2 :]
    assert arguments[: len(EXECUTOR_PROGRAM)] == EXECUTOR_PROGRAM
    assert arguments[-1] == str(tmp_path)
    assert arguments[-2].removeprefix("127.0.0.1:") in program  # the SuperNode's port


def test_the_command_shows_asks_and_approves(app, tmp_path, monkeypatch):
    site = tmp_path / "state"
    shown = call("flower", "approve", app, "--folder", site)
    assert shown.code == BAD_INPUT
    assert "there is no terminal to ask" in shown.err
    assert "federated/client_app.py" in shown.out
    assert not site.exists()
    for answer, approved in (("no", 0), ("yes", 1)):
        monkeypatch.setattr("builtins.input", lambda _, answer=answer: answer)
        monkeypatch.setattr("fedcso.cli.commands.flower.approve.sys.stdin", type("T", (), {"isatty": lambda _: True})())
        assert call("flower", "approve", app, "--folder", site).code == FINE
        assert len(read_approved(site)) == approved
    assert "approved already" in call("flower", "approve", app, "--folder", site, "--yes").out
    assert CODE in call("flower", "approve", app, "--folder", site, "--show", "--yes").out
    for wrong in (tmp_path / "none", site):
        outcome = call("flower", "approve", wrong, "--folder", site)
        assert outcome.code == BAD_INPUT
        assert "is not an app" in outcome.err
    (app / "pyproject.toml").write_text("[project]\nname = 3\n")
    with pytest.raises(FedcsoError, match="can't build the app"):
        files_of_app(app)
    assert json.loads((site / "approved.json").read_text())
