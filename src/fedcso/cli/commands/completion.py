"""Print a script with which bash, zsh or fish completes commands, options and names.

examples:
  fedcso completion bash                  print it; to use it now: eval "$(fedcso completion bash)", also in ~/.bashrc
  fedcso completion zsh                   the same for zsh and ~/.zshrc
  fedcso completion fish > ~/.config/fish/completions/fedcso.fish
"""

from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Print the script."""
    parser = simple_parser("completion", str(__doc__))
    parser.add_argument("shell", help="bash, zsh or fish")
    shell = parser.parse_args(arguments).shell
    from fedcso.cli.completion import script_for

    print(script_for(shell), end="")
    return 0
