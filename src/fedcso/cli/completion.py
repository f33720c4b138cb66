"""Scripts with which a shell completes commands, options and names; they are made from the help of the commands."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field

from fedcso.algorithms import ALGORITHMS
from fedcso.cli.commands import COMMANDS, load_command
from fedcso.cli.commands.list import TABLES
from fedcso.core.errors import UnknownName
from fedcso.estimators import AUTO, ESTIMATORS
from fedcso.experiments import EXPERIMENTS
from fedcso.problems import PROBLEMS


@dataclass(frozen=True)
class Completed:
    """What can follow a command."""

    words: Sequence[str] = ()
    """Words that come first: the names of problems, for example."""
    options: Sequence[str] = ()
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The values of those options that have names as values."""


NAMES = {"--algorithm": list(ALGORITHMS), "--estimator": [*ESTIMATORS, AUTO], "--problem": list(PROBLEMS)}
"""Values of options that the help does not list as choices."""

FIRST: dict[str, Sequence[str]] = {
    **{command: list(PROBLEMS) for command in ("run", "sweep", "diagnose", "theory", "check")},
    "reproduce": list(EXPERIMENTS),
    "list": list(TABLES),
}
"""Words that come first, by command."""


def gather() -> dict[str, Completed]:
    """Return what can follow each command, read from its help."""
    found = {}
    for name in COMMANDS:
        text = _help(name)
        options = list(dict.fromkeys(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)))
        values: dict[str, Sequence[str]] = {
            option: choices.split(",") for option, choices in re.findall(r"(--[\w-]+) \{(.*?)\}", text)
        }
        values |= {option: names for option, names in NAMES.items() if option in options}
        found[name] = Completed(FIRST.get(name) or _actions(text), options, values)
    return found


def _help(name: str) -> str:
    short = _printed(name, "--help")
    return _printed(name, "--help-all") if "--help-all" in short else short


def _printed(name: str, option: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out), suppress(SystemExit):  # the parser ends the process after the help
        load_command(name).main([option])
    return out.getvalue()


def _actions(text: str) -> Sequence[str]:
    """Return the actions of a command that has some: `usage: fedcso flower init|keys …`."""
    usage = re.search(r"^usage: fedcso [\w-]+ ([\w-]+(?:\|[\w-]+)+)", text)
    return usage[1].split("|") if usage else []


def _for_bash(found: Mapping[str, Completed]) -> str:
    cases, values = [], []
    for name, one in found.items():
        cases.append(f'    {name}) words="{" ".join(one.words)}"; options="{" ".join(one.options)}" ;;')
        values += [f'    "{name} {option}") words="{" ".join(names)}" ;;' for option, names in one.values.items()]
    return "\n".join(
        [
            '# fedcso completion for bash:  eval "$(fedcso completion bash)"',
            "_fedcso() {",
            '  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words="" options=""',
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            f'    COMPREPLY=($(compgen -W "{" ".join(found)}" -- "$current")); return',
            "  fi",
            '  case "${COMP_WORDS[1]}" in',
            *cases,
            "  esac",
            '  [ "$COMP_CWORD" -gt 2 ] && words=""',
            '  case "${COMP_WORDS[1]} $before" in',
            *values,
            "  esac",
            '  case "$current" in -*) words="$options" ;; esac',
            '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            "complete -o default -F _fedcso fedcso",
            "",
        ]
    )


def _for_zsh(found: Mapping[str, Completed]) -> str:
    script = _for_bash(found).replace("for bash", "for zsh").replace("completion bash", "completion zsh")
    return script.replace("\n", "\nautoload -U +X compinit bashcompinit && compinit && bashcompinit\n", 1)


def _for_fish(found: Mapping[str, Completed]) -> str:
    lines = ["# fedcso completion for fish:  fedcso completion fish | source"]
    lines += [f'complete -c fedcso -n __fish_use_subcommand -a {name} -d "{COMMANDS[name]}"' for name in found]
    for name, one in found.items():
        here = f"complete -c fedcso -n '__fish_seen_subcommand_from {name}'"
        lines += [f"{here} -a '{' '.join(one.words)}'"] if one.words else []
        for option in one.options:
            names = one.values.get(option)
            lines.append(f"{here} -l {option[2:]}" + (f" -x -a '{' '.join(names)}'" if names else ""))
    return "\n".join([*lines, ""])


SHELLS: dict[str, Callable[[Mapping[str, Completed]], str]] = {"bash": _for_bash, "zsh": _for_zsh, "fish": _for_fish}


def script_for(shell: str) -> str:
    """Return the script for a shell."""
    if shell not in SHELLS:
        raise UnknownName("shell", shell, SHELLS)
    return SHELLS[shell](gather())
