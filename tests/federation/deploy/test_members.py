"""Sites whose keys are replaced: the other sites on the machine know the new key."""

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.federation.deploy.deployment import Deployment, site_process
from fedcso.federation.deploy.members import replace_key
from fedcso.federation.deploy.processes import Processes


def test_the_other_sites_of_a_trial_are_told_a_new_key(tmp_path, monkeypatch):
    deployment, started = Deployment(tmp_path), []
    deployment.make_site_keys(["a", "b"])
    for site in ("a", "b"):
        deployment.introduce(site)
    before = deployment.public_key("a").read_bytes()
    monkeypatch.setattr(Processes, "alive", lambda processes: {site_process("a"): 1, site_process("b"): 2})
    monkeypatch.setattr(Processes, "stop", lambda processes, names: None)
    monkeypatch.setattr(Deployment, "start_site", lambda deployment, site: started.append(site))
    replace_key(deployment, "a", None)
    assert started == ["a"]
    assert deployment.public_key("a").read_bytes() != before
    for site in ("a", "b"):
        assert (tmp_path / "sites" / site / "peers" / "a.pub").read_bytes() == deployment.public_key("a").read_bytes()
