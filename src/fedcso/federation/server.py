"""The coordinator's part: an ordinary run whose rounds are executed by sites."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError
from fedcso.core.task import Task
from fedcso.datasets.tables.agree import ELSEWHERE, agree
from fedcso.datasets.tables.describe import Description
from fedcso.engines.engine import Engine, only_one
from fedcso.engines.job import Job
from fedcso.engines.loop import Rounds
from fedcso.federation.decisions import write_decisions
from fedcso.federation.deploy.deployment import Deployment
from fedcso.federation.deploy.watchdog import watched
from fedcso.federation.journal import Journal
from fedcso.federation.options import COORDINATOR_ONLY, Federation, read_wishes, run_config
from fedcso.federation.privacy import statement
from fedcso.federation.remote_problem import RemoteProblem, Survey, remote_judge
from fedcso.federation.request import Order
from fedcso.federation.roster import Roster
from fedcso.federation.rounds import Connection, SiteBySite
from fedcso.federation.secure.revealed import Revealed
from fedcso.reports import outputs
from fedcso.reports.recorded import record_of
from fedcso.reports.terminal import conclude
from fedcso.runs.callbacks import Interrupted, Rhythm
from fedcso.runs.config import RunConfig
from fedcso.runs.execute import at_work, mark_end
from fedcso.runs.folder import RunFolder, read_yaml
from fedcso.runs.progress import display
from fedcso.runs.study import Results, Study, Unit, as_file_name
from fedcso.runs.tracking import Silent

SITES = "sites.json"
"""The file with the sites' descriptions and agreement at the start of the run."""

WITHOUT_NOISE = "These counts have no noise: ε in privacy.json covers training, but neither calibration nor thresholds."


def server_app(app: Path) -> ServerApp:
    """Return the ServerApp of the app in the folder `app`."""
    flower = ServerApp()

    @flower.main()
    def main(grid: Grid, context: Context) -> None:
        """Run in the folder named in the run configuration, or in a new one."""
        logging.getLogger("fedcso").setLevel(logging.INFO)
        named = str(context.run_config["run-folder"])
        coordinate(grid, RunFolder.open(Path(named)) if named else _new_folder(app), app)

    return flower


def _new_folder(app: Path) -> RunFolder:
    """Create the run folder of a run that was started with Flower's command line."""
    settings = read_yaml(app / "config.yaml", "settings")
    config, data = run_config(settings, app), {"sites": Federation.from_flat(settings).sites}
    return RunFolder.create(Path(config.out), "flower", settings, data, config.sources())


def coordinate(grid: Grid, folder: RunFolder, app: Path) -> int:
    """Execute the rest of a run; besides the usual results, its folder gets the sites' tables."""
    with at_work(folder), _told(folder), watched(_superlink_port(folder)):
        settings = folder.config()
        config, federation = run_config(settings, app).starting_in(folder), Federation.from_flat(settings)
        for_sites = {name: value for name, value in settings.items() if name not in COORDINATOR_ONLY}
        order = Order(for_sites, federation.names, seconds=federation.round_seconds)
        roster = Roster(grid, order, federation.round_seconds)
        _gather(roster, folder, federation)
        connection = Connection(grid, federation, roster, Journal(folder), Revealed(folder.path))
        local = _local_task(config, roster, folder)
        task = _over_sites(local, connection)
        study = Study(_units(config, task, connection, folder), folder.path / "checkpoints", Rhythm(rounds=1))

        def on_checkpoint() -> None:
            found = study.collect()
            outputs.write_metrics(folder, found, config.seeds, task)
            if federation.dp_noise:
                traces = [trace for unit in found.values() for runs in unit for trace in runs]
                folder.write("privacy.json", statement(federation, traces, connection.journal.lines.values()))

        found = study.execute(display(), Silent(), on_checkpoint)
        table = outputs.write_all(folder, found, config.seeds, task)
        if roster.order.agreement and local.judge.rank is not None:
            _decide(folder, connection, task, config, found)
        mark_end(folder, found)
        return conclude(folder, table)


def _superlink_port(folder: RunFolder) -> int | None:
    """Return the SuperLink's control port if the run was started with `fedcso flower run`."""
    place = folder.environment()["data"].get("federation")
    return int(Deployment.open(Path(place)).address()["control"]) if place else None


@contextmanager
def _told(folder: RunFolder) -> Iterator[None]:
    """Log errors to the run folder, where `fedcso flower run` shows them."""
    try:
        yield
    except Interrupted as reason:
        logging.getLogger("fedcso").error("%s", reason)
        raise
    except FedcsoError as error:
        logging.getLogger("fedcso").error("%s", error)
        folder.mark("failed")
        raise
    except Exception:  # a bug: log the traceback where the user sees it
        logging.getLogger("fedcso").exception("the coordinator's app broke")
        folder.mark("failed")
        raise


def _gather(roster: Roster, folder: RunFolder, federation: Federation) -> None:
    """Wait for the sites; on resume, use what they reported and agreed on when the run started."""
    path = folder.path / SITES
    began = json.loads(path.read_text()) if path.is_file() else None
    if began:
        roster.order = replace(roster.order, agreement=began["agreement"])
    roster.wait_for_all(federation.min_sites, federation.wait_seconds)
    if began:  # who trains determines the participants of each round, so it must not change
        for about, then in zip(roster.about, began["about"], strict=True):
            about.trains, about.tests = then["trains"], then["tests"]
            about.validates = then.get("validates", False)  # not asked by earlier versions
        return
    names, tables = roster.names, tables_of(roster)
    if roster.order.config.get("data") == ELSEWHERE and len(tables) < len(roster.nodes):
        absent = ", ".join(names[n] for n in roster.nodes if names[n] not in tables)
        raise FedcsoError(f"data = {ELSEWHERE!r}, but sites were started without --data: {absent}")
    if tables:
        roster.ask_again(replace(roster.order, agreement=agree(tables)))
    content = {"about": [asdict(about) for about in roster.about], "agreement": roster.order.agreement}
    folder.write(SITES, json.dumps(content, indent=1))


def tables_of(roster: Roster) -> dict[str, Description]:
    """Return the sites' descriptions of their tables by name; go on without a site whose description can't be read."""
    found = {}
    for client, said in roster.said.items():
        if "table" in said and client in roster.nodes:
            try:
                found[roster.names[client]] = Description.read(roster.names[client], said["table"])
            except FedcsoError as reason:
                roster.turn_away(client, reason)
    return found


def _local_task(config: RunConfig, roster: Roster, folder: RunFolder) -> Task:
    """Return the task as the coordinator can make it: for tables at the sites, with the form of their data only."""
    if roster.order.agreement:
        path = folder.write("agreement.json", json.dumps(roster.order.agreement, indent=1))
        config = replace(config, problem_options={**config.problem_options, "agreement": str(path)})
    return config.task()


def _over_sites(task: Task, connection: Connection) -> Task:
    """Return the task with what the coordinator knows about the sites' data."""
    roster = connection.roster
    survey = Survey(partial(connection.measure, roster.order))
    return Task(
        RemoteProblem(task.problem),
        roster.about,
        test=survey.on_test if any(about.tests for about in roster.about) else None,
        validation=survey.on_validation if any(about.validates for about in roster.about) else None,
        judge=remote_judge(task.judge, task.clients[0]),
        names=roster.names,
        notes=roster.order.agreement.get("notes", task.notes),
        files=task.files,
        weights=task.weights,
        start=task.start,
    )


def _decide(folder: RunFolder, connection: Connection, task: Task, config: RunConfig, found: Results) -> None:
    """Ask the sites once for counts of the chosen model's scores, and write what they are for.

    The results of training are written already; if sites send too little, a warning says so.
    """
    try:
        best = record_of(folder).chosen()
        method, x = best["algorithm"], found[best["algorithm"]][0][config.seeds.index(best["seed"])].best
        answers = connection.count(connection.roster.order, x)
        notes = [WITHOUT_NOISE] if connection.federation.dp_noise else []
        write_decisions(folder, task, method, x, answers, read_wishes(folder.config()), notes)
    except FedcsoError as reason:
        logging.getLogger("fedcso").warning("no calibration and no thresholds: %s", reason)


def _units(config: RunConfig, task: Task, connection: Connection, folder: RunFolder) -> list[Unit]:
    order, units = connection.roster.order, []
    for name, (algorithm, codec) in config.built().items():
        own = replace(order, algorithm=name, run=f"{folder.path.name}/{as_file_name(name)}")
        engine = over_sites(connection, own)
        units.append(Unit(name, task, config.plan, [algorithm], config.seeds, engine=engine, codec=codec))
    return units


def over_sites(connection: Connection, order: Order) -> Engine:
    """Return an engine that runs rounds over the connected sites."""

    @contextmanager
    def start(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]) -> Iterator[Rounds]:
        job = only_one(algorithms, job, seeds)
        connection.federation.check_method(job.algorithm, job.plan, job.codec)
        # With noise, the iterate of the output step must not be sent, because no noise is added to it.
        output_step = -1 if connection.federation.dp_noise else job.output_step()
        own = replace(order, run=f"{order.run}/seed{job.seed}", seed=job.seed, output_step=output_step)
        yield SiteBySite(job, connection, own)

    return Engine(start)
