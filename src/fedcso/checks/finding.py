"""What a check is, what it finds, and how several are carried out one after the other."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from fedcso.core.user_errors import describe_error

Subject = TypeVar("Subject")


class Finding(NamedTuple):
    """One sentence on what is wrong and what to do, or, as a remark, on what could be better."""

    sentence: str
    wrong: bool = True


def remark(sentence: str) -> Finding:
    """Return a finding that is no mistake."""
    return Finding(sentence, wrong=False)


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """One thing that is expected of a user's code."""

    name: str
    """What is checked, in a word or two."""
    expected: str
    """What is true if nothing is found, as a sentence."""
    find: Callable[[Subject], Iterable[Finding]]
    """Yields what is found; an exception in the user's code is a finding too."""
    needs: Sequence[str] = ()
    """The names of checks without which this one makes no sense."""
    applies: Callable[[Subject], bool] = lambda subject: True
    """Whether there is anything to check, for optional parts."""


class Outcome(NamedTuple):
    """What one check has found."""

    check: Check[Any]
    findings: Sequence[Finding] = ()
    skipped: str = ""
    """The check whose mistakes must be put right first; empty if this one was carried out."""

    @property
    def passed(self) -> bool:
        """True if it was carried out and nothing is wrong."""
        return not self.skipped and not any(finding.wrong for finding in self.findings)

    def __str__(self) -> str:
        return f"passed   {self.check.name}: {self.check.expected}"

    def sentences(self, wrong: bool) -> list[str]:
        """Return what was found, with the name of the check in front."""
        return [f"{self.check.name}: {found.sentence}" for found in self.findings if found.wrong == wrong]


@dataclass(frozen=True)
class Findings:
    """The outcomes of all checks of one thing. Its text lists what passed and ends with what is wrong."""

    title: str
    outcomes: Sequence[Outcome]

    @property
    def fine(self) -> bool:
        """True if nothing is wrong."""
        return not self.wrong

    @property
    def wrong(self) -> list[str]:
        """What is wrong, a sentence each, with the name of the check in front."""
        return [sentence for outcome in self.outcomes for sentence in outcome.sentences(wrong=True)]

    @property
    def remarks(self) -> list[str]:
        """What is no mistake, but good to know."""
        return [sentence for outcome in self.outcomes for sentence in outcome.sentences(wrong=False)]

    @property
    def passed(self) -> list[str]:
        """The names of the checks that passed."""
        return [outcome.check.name for outcome in self.outcomes if outcome.passed]

    def __str__(self) -> str:
        return "\n".join([*(str(outcome) for outcome in self.outcomes if outcome.passed), self.conclusion()])

    def conclusion(self) -> str:
        """Return the text that follows what passed."""
        waiting: dict[str, list[str]] = {}
        for outcome in self.outcomes:
            if outcome.skipped:
                waiting.setdefault(outcome.skipped, []).append(outcome.check.name)
        skipped = [f"skipped  {', '.join(names)}: correct “{first}” first" for first, names in waiting.items()]
        lines = [*skipped, *(f"note     {one}" for one in self.remarks), *(f"wrong    {one}" for one in self.wrong)]
        count = len(self.wrong)
        end = f"{count} {'thing is' if count == 1 else 'things are'} wrong" if count else "nothing is wrong"
        return "\n".join([*lines, f"{self.title}: {end}"])


def carry_out(
    title: str, checks: Sequence[Check[Any]], subject: Any, tell: Callable[[Outcome], None] = lambda outcome: None
) -> Findings:
    """Carry out checks in order, and `tell` each outcome; those that need one that did not pass are skipped."""
    outcomes: dict[str, Outcome] = {}
    for check in checks:
        missing = next((name for name in check.needs if not outcomes[name].passed), "")
        if missing:
            outcome = Outcome(check, skipped=outcomes[missing].skipped or missing)
        elif check.applies(subject):
            outcome = Outcome(check, _found(check, subject))
        else:
            continue
        outcomes[check.name] = outcome
        tell(outcome)
    return Findings(title, list(outcomes.values()))


def _found(check: Check[Any], subject: Any) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(check.find(subject))
    except Exception as error:
        found.append(Finding(describe_error(error)))
    return found
