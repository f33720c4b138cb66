"""Look up known vulnerabilities of the installed packages, for `make audit`:  python tests/audit.py PIP-AUDIT FOLDER

PIP-AUDIT is the program, FOLDER holds the packages. pip-audit alone says that no vulnerabilities are known of packages
about which the registry does not answer; here these count as not checked. Uses the standard library only.

exit codes: 0 all were checked and none is known to be vulnerable, 1 some are, 3 some or all could not be checked
"""

import json
import subprocess
import sys

VULNERABLE, NOT_CHECKED = 1, 3


def main(program, folder):
    """Ask, print what was found, and return the exit code."""
    done = subprocess.run(
        [program, "--path", folder, "--format", "json", "--progress-spinner", "off"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, LookupError, TypeError):
        lines = done.stderr.strip().splitlines() or ["it says nothing"]
        print(f"not checked: the registry does not answer ({lines[-1]}); try again where it does")
        return NOT_CHECKED
    return told(packages)


def told(packages):
    """Print what pip-audit found out about packages, and return the exit code."""
    skipped = [one["name"] for one in packages if "skip_reason" in one and one["name"] != "fedcso"]
    bad = [one for one in packages if one.get("vulns")]
    for one in bad:
        for flaw in one["vulns"]:
            fixed = ", ".join(flaw.get("fix_versions", [])) or "no version yet"
            print(f"{one['name']} {one['version']}: {flaw['id']}, fixed in {fixed}")
    checked = sum("vulns" in one for one in packages)
    print(f"{checked} packages checked, {len(bad)} with known vulnerabilities")
    if skipped:
        print(f"not checked: the registry has no answer about {len(skipped)} packages: {', '.join(skipped)}")
        if not checked:
            print("so nothing is known; try again where the registry answers")
    return VULNERABLE if bad else NOT_CHECKED if skipped else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
