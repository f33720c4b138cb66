"""Three sites with tables of their own, started as sites are: they agree on columns, train, and measure at home."""

import numpy as np
import pandas as pd
import pytest

from fedcso.federation.deploy.members import update_register
from tests.command_line import read_csv
from tests.federation.real.local import outcomes

SITES = ["berlin", "oslo", "rome"]


@pytest.mark.federation
def test_sites_with_tables_train_together(start, tmp_path):
    rng = np.random.default_rng(1)
    options = ["--problem", "auprc", "--data", "sites", "--label", "y", "--sites", ",".join(SITES)]
    local = start(*options, "--rounds", 3, "--evaluate-every", 3, "--learning-rate", 0.5, sites=0)
    local.deployment.make_keys(SITES)
    update_register(local.deployment)
    for number, site in enumerate(SITES):
        values = rng.normal(size=(200, 3))
        frame = pd.DataFrame(values, columns=["a", "b", "c"])
        frame["name"] = [f"patient {n}" for n in range(200)]
        frame["y"] = (values[:, 0] + 0.2 * rng.normal(size=200) > 1.0 + 0.3 * number).astype(int)  # fewest in Rome
        frame.to_csv(tmp_path / f"{site}.csv", index=False)
        local.deployment.allow(site, [str(tmp_path / f"{site}.csv")])
        policy = local.deployment.site_folder(site) / "site.toml"
        policy.write_text(policy.read_text().replace("smallest_count = 10", "smallest_count = 5"))
        local.deployment.start_site(site, {"data": str(tmp_path / f"{site}.csv")})
    folder = local.run()
    assert set(outcomes(folder, 1)) == set(SITES)
    metrics = read_csv(folder.path / "metrics.csv")
    assert float(metrics[-1]["client_average_precision"]) > float(metrics[0]["client_average_precision"])
    assert (folder.path / "models" / "preparation.json").is_file()
    assert "of 100 alerts about" in (folder.path / "decisions.md").read_text()
    assert (folder.path / "model" / "predict.py").is_file()
    everything = b"".join(path.read_bytes() for path in folder.path.rglob("*") if path.is_file())
    assert b"patient" not in everything
