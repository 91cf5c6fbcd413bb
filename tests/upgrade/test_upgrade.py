"""The previous release's processes and ours share one database during an upgrade, and nothing is lost or done twice."""

from __future__ import annotations

import pytest

from tests.upgrade.platform import MixedPlatform
from tests.upgrade.release import NoReleaseError, previous_commit, previous_release
from tests.upgrade.story import run


@pytest.mark.slow
def test_a_platform_is_upgraded_while_users_work() -> None:
    try:
        former = previous_release()
    except NoReleaseError as error:
        pytest.skip(str(error))
    report = run(MixedPlatform(former=former))
    assert not report.violations, f"{report}\n{report.log}"


def test_a_commit_that_the_clone_does_not_have_is_named() -> None:
    with pytest.raises(NoReleaseError, match="no commit 'no-such-release': fetch"):
        previous_commit("no-such-release")
