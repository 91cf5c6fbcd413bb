"""The units: systemd reads them, finds them hardened, and they agree with the code and with the manifests.

No test starts them: that takes a machine whose first process is systemd.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from geomill.cli.serving import GRACE_SECONDS
from geomill.domain.engine.message import TASK_QUEUES
from geomill.settings import variables
from tests.deploy.commands import refusal
from tests.deploy.kubernetes.manifests import KustomizeOverlay, option

FOLDER = Path(__file__).parents[3] / "deploy/systemd"
PAGE = Path(__file__).parents[3] / "docs/how-to/run-on-many-machines.md"
PROGRAM = "/opt/geomill/venv/bin/geomill"
EXPOSURE = 2.1
"""The most that `systemd-analyze security` may find open, of ten."""


@dataclass(frozen=True)
class Unit:
    file: Path

    def values(self, name: str) -> list[str]:
        return re.findall(rf"^{name}=(.*)$", self.file.read_text(encoding="utf-8"), re.MULTILINE)

    def value(self, name: str) -> str:
        (value,) = self.values(name)
        return value

    @property
    def words(self) -> list[str]:
        return shlex.split(self.value("ExecStart"))

    @property
    def settings(self) -> dict[str, str]:
        assignments = [word for line in self.values("Environment") for word in shlex.split(line)]
        return dict(assignment.split("=", 1) for assignment in assignments)


UNITS = {file.name: Unit(file) for file in sorted(FOLDER.glob("*.service"))}
LONG = [unit for unit in UNITS.values() if unit.value("Type") == "notify"]
every_unit = pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
long_running = pytest.mark.parametrize("unit", LONG, ids=lambda unit: unit.file.name)
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as on a machine where the program exists: systemd refuses to verify a missing one."""
    for file in FOLDER.iterdir():
        text = file.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true")
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    return tmp_path


def analyze(*words: str) -> str:
    run = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)
    return run.stdout + run.stderr + ("" if run.returncode == 0 else f"\nexit code {run.returncode}")


def complaints(file: Path) -> list[str]:
    """Return what systemd says about this file. It also judges other units of the machine, which are not ours."""
    name = file.name.replace("@.", "@1.")
    lines = analyze("verify", "--man=no", str(file.with_name(name))).splitlines()
    return [line for line in lines if str(file.parent) in line or line.startswith("geomill")]


@needs_systemd
@every_unit
def test_systemd_understands_the_unit(unit: Unit, installed: Path) -> None:
    assert complaints(installed / unit.file.name) == []


@needs_systemd
def test_systemd_complains_about_a_misspelt_line(installed: Path) -> None:
    file = installed / "geomill-gateway.service"
    file.write_text(file.read_text().replace("WatchdogSec", "WatchdogSeconds"))
    assert "WatchdogSeconds" in complaints(file)[0]


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def drop_ins() -> dict[str, str]:
    """The files for zones in folders, by their places, as the page has them."""
    pattern = r"^`/etc/systemd/system/(\S+\.d/\S+\.conf)`[^`]*```ini\n(.*?)^```"
    return dict(re.findall(pattern, page(), re.MULTILINE | re.DOTALL))


def test_the_page_creates_every_user() -> None:
    created = re.findall(r"^ *# useradd .* (\S+)$", page(), re.MULTILINE)
    assert set(created) == {unit.value("User") for unit in UNITS.values()}


@needs_systemd
@every_unit
def test_systemd_understands_the_files_for_zones_in_folders(unit: Unit, installed: Path) -> None:
    assert len(drop_ins()) == 2
    for place, text in drop_ins().items():
        (installed / place).parent.mkdir(exist_ok=True)
        (installed / place).write_text(text, encoding="utf-8")
    assert complaints(installed / unit.file.name) == []


def test_the_external_server_does_not_see_folders_of_the_inside() -> None:
    hidden = re.findall(r"^InaccessiblePaths=(.*)$", drop_ins()["geomill-external.service.d/zones.conf"], re.MULTILINE)
    assert hidden == ["/srv/geomill/bronze /srv/geomill/silver /etc/geomill -/var/lib/geomill"]


@needs_systemd
@every_unit
def test_a_unit_may_do_little(unit: Unit, installed: Path) -> None:
    verdict = analyze("security", "--offline=true", str(installed / unit.file.name))
    match = re.search(r"exposure level for \S+: ([\d.]+)", verdict)
    assert match is not None, verdict
    assert float(match[1]) <= EXPOSURE


@every_unit
def test_the_command_exists(unit: Unit) -> None:
    program, *words = unit.words
    assert program == PROGRAM
    assert refusal(words) is None


@every_unit
def test_every_variable_is_a_setting(unit: Unit) -> None:
    assert set(unit.settings) <= set(variables())


@every_unit
def test_a_unit_is_no_root_and_waits_for_the_network(unit: Unit) -> None:
    assert unit.value("User").startswith("geomill")
    assert {"network-online.target", "postgresql.service"} <= set(unit.value("After").split())


@long_running
def test_a_process_comes_back_always(unit: Unit) -> None:
    assert unit.value("Restart") == "always"
    assert unit.value("StartLimitIntervalSec") == "0"
    assert unit.value("KillMode") == "mixed"
    assert int(unit.value("WatchdogSec")) >= 30
    assert unit.value("WantedBy") == "geomill.target"


@long_running
def test_a_process_has_time_to_stop(unit: Unit) -> None:
    drain = int(unit.settings.get("GEOMILL_DRAIN_SECONDS", GRACE_SECONDS))
    assert int(unit.value("TimeoutStopSec")) >= drain + 15


def test_the_external_server_reads_nothing_of_the_inside() -> None:
    external = UNITS["geomill-external.service"]
    inside = [unit for unit in LONG if unit is not external]
    assert external.values("EnvironmentFile") == ["/etc/geomill/external.env"]
    assert external.value("User") not in {unit.value("User") for unit in inside}
    assert external.value("StateDirectory") not in {unit.value("StateDirectory") for unit in inside}
    assert "GEOMILL_DATA" not in external.settings


def test_servers_of_one_machine_have_ports_of_their_own() -> None:
    ports = [port for unit in UNITS.values() for port in option(unit.words, "--port")]
    assert sorted(ports) == ["8000", "8001", "8002"]


def test_units_and_manifests_run_the_same_workers() -> None:
    workloads = KustomizeOverlay("postgres").workloads
    served = []
    for name in ("worker-light", "worker-heavy"):
        unit = UNITS[f"geomill-{name}@.service"]
        assert unit.words[1:] == workloads[name].args
        tuned = {variable: value for variable, value in unit.settings.items() if variable != "GEOMILL_DATA"}
        assert tuned.items() <= workloads[name].settings.items()
        served += option(unit.words, "--queue")
    assert sorted(served) == sorted(TASK_QUEUES)


def test_every_unit_has_its_place_in_the_manifests_too() -> None:
    names = {re.sub(r"geomill-([\w-]+)@?\.service", r"\1", name) for name in UNITS}
    assert names == set(KustomizeOverlay("postgres").workloads)
