"""What real sites do wrong: the round goes on with the rest, the site is named, and the numbers are those of the rest."""


from tests.command_line import read_csv
from tests.federation.local import assert_same, final, outcomes, without

QUADRATIC = ["--problem", "nested_quadratic", "--local-steps", 5, "--algorithm", "Acc-FCSG-M", "--sites", 3]
METHOD = "Acc-FCSG-M"


def assert_left_out(folder, round, site, reason):
    """In the table, in the log by name, and in the counts; the others answered."""
    found = outcomes(folder, round)
    assert reason in found.pop(site)
    assert set(found.values()) == {"answered"}
    assert f"round {round}: site {site} is left out: " in (folder.path / "log.txt").read_text()


def test_a_site_that_raises_sends_nan_other_shapes_or_huge_numbers_is_left_out(start):
    local = start(*QUADRATIC, "--rounds", 4, up=False)
    local.misbehave("0", (0, "raise"), (3, "huge"))
    local.misbehave("1", (1, "nan"))
    local.misbehave("2", (2, "shape"))
    local.up()
    folder = local.run()
    assert_left_out(folder, 1, "0", "it raised RuntimeError; its own log says why")
    assert_left_out(folder, 2, "1", "not finite")
    assert_left_out(folder, 3, "2", "other shapes")
    assert_left_out(folder, 4, "0", "times as long as the median site's")
    assert_same(final(folder, METHOD), without(folder, METHOD, {(0, 0), (1, 1), (2, 2), (0, 3)}))
    dropped = {row["client"]: int(row["dropped"]) for row in read_csv(folder.path / "clients.csv")}
    assert dropped == {"0": 2, "1": 1, "2": 1}
    told = "".join(path.read_text() for path in folder.path.glob("*.*") if path.suffix in (".txt", ".csv", ".json"))
    assert "Smith" not in told + local.said("superlink")
