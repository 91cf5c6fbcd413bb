"""Upgrades a platform while users work, from the previous release to this checkout.

script/upgrade-test              from the last tag, or from the commit in tests/upgrade/previous-release
script/upgrade-test 54d14f1      from this commit
"""

from __future__ import annotations

import argparse
import sys

from tests.upgrade.platform import MixedPlatform
from tests.upgrade.release import NoReleaseError, previous_release
from tests.upgrade.story import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", help="The previous release.")
    arguments = parser.parse_args()
    try:
        former = previous_release(arguments.commit)
    except NoReleaseError as error:
        sys.exit(f"upgrade-test: {error}")
    report = run(MixedPlatform(former=former))
    print(f"\n{report}")
    print(report.log if report.violations else "every invariant holds")
    sys.exit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
