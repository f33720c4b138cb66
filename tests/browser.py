"""A page in a real browser: Chromium without a window, told what to do by a script added to a copy of the page."""

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import NamedTuple

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)")


class Visit(NamedTuple):
    """What a script found, and what the browser complained about."""

    found: str
    console: list[str]


def visit(page: Path, script: str, folder: Path, width: int = 1280) -> Visit:
    """Open a page, carry out a script once it is drawn, and return the text that the script `return`s."""
    copy = folder / "visited.html"
    wrapped = (
        "<script>setTimeout(() => { const found = (() => {" + script + "})();"
        "const note = document.createElement('output'); note.id = 'found'; note.textContent = String(found);"
        "document.body.append(note); }, 200)</script></body>"
    )
    copy.write_text(page.read_text().replace("</body>", wrapped))
    done = subprocess.run(
        [
            *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
            *(f"--user-data-dir={folder / 'profile'}", f"--window-size={width},1000", "--virtual-time-budget=3000"),
            *("--dump-dom", copy.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    (found,) = re.findall(r'<output id="found">(.*?)</output>', done.stdout, re.DOTALL)
    return Visit(unescape(found), [line for line in done.stderr.splitlines() if "CONSOLE" in line])
