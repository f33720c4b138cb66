"""Approve the code that a site runs for the coordinator: show an app, and ask.

A site runs an app only if its digest is on the site's list, approved.json in --folder; a changed app is refused until
it is approved. APP is the folder `app` that you got from the coordinator, or an app that the site has refused: its log
names the folder.

examples:
  fedcso flower approve app --folder site-state            show what it would run, and ask
  fedcso flower approve app --folder site-state --show     print all its files
  fedcso flower approve app --folder site-state --yes      approve without asking
"""

import sys
from pathlib import Path

from fedcso.core.errors import FedcsoError
from fedcso.federation.sovereignty.approval import (
    SETTINGS,
    Files,
    approve,
    changes,
    digest,
    files_of_app,
    read_approved,
)
from fedcso.reports.terminal import show
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Show an app, ask, and add it to the list."""
    parser = simple_parser("flower approve", str(__doc__))
    parser.add_argument("app", help="the folder of the app")
    parser.add_argument("--folder", default="fedcso-site", help="the folder of this site")
    parser.add_argument("--show", action="store_true", help="print the files")
    parser.add_argument("--yes", action="store_true", help="approve without asking")
    options = parser.parse_args(arguments)
    files, folder = files_of_app(Path(options.app)), Path(options.folder)
    if options.show:
        for path, content in files.items():
            print(f"--- {path}\n{content.decode(errors='replace')}")
    _describe(files, folder)
    if digest(files) in read_approved(folder):
        print("this app is approved already")
        return 0
    if not options.yes and not _agreed():
        print("not approved; nothing was changed")
        return 0
    print(f"approved {approve(folder, files)[:12]} at the site in {folder}")
    return 0


def _describe(files: Files, folder: Path) -> None:
    differs = changes(folder, files)
    show(
        [
            {
                "file": path,
                "bytes": str(len(content)),
                "since the last approval": differs.get(path, "settings, judged by site.toml" * (path == SETTINGS)),
            }
            for path, content in files.items()
        ]
    )
    for path, how in differs.items():
        if how == "removed":
            print(f"removed  {path}")
    print(f"app      {digest(files)}")
    print("code     runs at this site with the rights of the account that runs `fedcso flower site`")


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise FedcsoError("there is no terminal to ask: look at the app with --show, then give --yes")
    return input("Run this code at your site? Type yes: ").strip().lower() == "yes"
