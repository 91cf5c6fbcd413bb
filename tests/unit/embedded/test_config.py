import re
from pathlib import Path

from geomill.embedded import config

GIB = 1024**3
GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "embedded-database.md"


def test_memory_settings_follow_the_machine_within_bounds():
    assert config.workstation(1 * GIB)["shared_buffers"] == "256MB"
    assert config.workstation(64 * GIB)["shared_buffers"] == "512MB"
    assert config.workstation(GIB // 64)["shared_buffers"] == "32MB"
    assert config.workstation(8 * GIB)["effective_cache_size"] == "4096MB"


def test_durability_is_on():
    settings = config.workstation(GIB)
    assert settings["fsync"] == settings["synchronous_commit"] == "on"


def test_the_server_listens_on_the_loopback_address_only():
    settings = config.connection(5433, Path("/x/socket"), Path("/x/log"))
    assert settings["listen_addresses"] == "127.0.0.1"
    assert settings["port"] == "5433"
    assert settings["unix_socket_directories"] == '"/x/socket"'


def test_values_are_quoted():
    assert config.render({"log_directory": "/it's\\here"}).endswith("log_directory = '/it''s\\\\here'")


def test_the_memory_is_that_of_this_machine_or_container():
    assert 64 * 1024**2 < config.memory() < 1024**5


def test_every_setting_is_explained_in_the_guide():
    section = GUIDE.read_text().split("## Settings and reasons")[1].split("\n## ")[0]
    documented = set(re.findall(r"^\| `(\w+)` ", section, re.MULTILINE))
    written = set(config.workstation(GIB) | config.connection(1, Path("/x"), Path("/x")))
    assert documented == written
