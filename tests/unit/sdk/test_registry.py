"""How handlers are found."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from geomill.errors import NotFoundError, SettingsError
from geomill.sdk.registry import Registry, handlers_in, load_handlers

HANDLER = """
from geomill.sdk import register_handler

@register_handler({name!r})
def work(ctx):
    return {{}}
"""


RENAMED = """
from geomill.sdk import register_handler

@register_handler("new_name", timeout_seconds=7, former_names=("old_name", "older_name"))
def work(ctx):
    return {}
"""
DEPRECATED = {
    "raster.stac_register_item": "raster.stac_build_item",
    "raster.stac_register_items": "raster.stac_build_items",
    "raster.stac_register_scenes": "raster.stac_build_scenes",
    "vector.stac_register": "vector.stac_build_item",
    "raster_cog": "raster.cog_of_source",
    "raster_cog_docker": "raster.cog_of_source",
    "raster_validate": "raster.validate",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which Python imports."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    importlib.invalidate_caches()


def test_entry_points_are_found() -> None:
    registry = load_handlers()
    assert {"echo", "hello_world", "sleep", "fail", "flaky_echo", "multi_phase", "size_check"} <= set(registry)
    assert registry["echo"].function.__module__ == "geomill.handlers.examples.echo"


def test_named_modules_are_found_beside_them(folder: Path) -> None:
    write(folder, "reg_single.py", HANDLER.format(name="single"))
    registry = load_handlers(["reg_single"])
    assert registry["single"].info.name == "single"
    assert "echo" in registry


def test_a_package_is_searched_with_all_that_is_in_it(folder: Path) -> None:
    write(folder, "reg_package/__init__.py", HANDLER.format(name="top"))
    write(folder, "reg_package/one.py", HANDLER.format(name="one"))
    write(folder, "reg_package/deep/__init__.py", "")
    write(folder, "reg_package/deep/two.py", HANDLER.format(name="two"))
    assert {"top", "one", "two"} <= set(load_handlers(["reg_package"]))


def test_a_handler_that_is_imported_elsewhere_is_no_duplicate(folder: Path) -> None:
    write(folder, "reg_origin.py", HANDLER.format(name="shared"))
    write(folder, "reg_user.py", "from reg_origin import work\nagain = work\n")
    assert "shared" in load_handlers(["reg_origin", "reg_user", "reg_origin"])


def test_two_handlers_of_one_name_are_refused(folder: Path) -> None:
    write(folder, "reg_first.py", HANDLER.format(name="twice"))
    write(folder, "reg_second.py", HANDLER.format(name="twice"))
    with pytest.raises(SettingsError) as caught:
        load_handlers(["reg_first", "reg_second"])
    assert "two handlers are called 'twice': reg_first.work and reg_second.work" in str(caught.value)


def test_a_handler_with_the_name_of_a_built_in_one_replaces_it_and_says_so(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, "reg_mine.py", HANDLER.format(name="echo"))
    assert load_handlers(["reg_mine"])["echo"].function.__module__ == "reg_mine"
    assert caplog.messages == [
        "the handler 'echo' of reg_mine.work replaces the built-in one, geomill.handlers.examples.echo.echo"
    ]
    write(folder, "reg_mine_too.py", HANDLER.format(name="echo"))
    with pytest.raises(SettingsError, match=r"two handlers are called 'echo': reg_mine\.work and reg_mine_too\.work"):
        load_handlers(["reg_mine", "reg_mine_too"])


def test_a_renamed_handler_keeps_its_former_names(folder: Path) -> None:
    write(folder, "reg_renamed.py", RENAMED)
    for registry in (load_handlers(["reg_renamed"]), handlers_in(["reg_renamed"])):  # of a worker, and of a child
        for name in ("new_name", "old_name", "older_name"):
            assert registry[name].info.name == "new_name"
            assert registry.info[name].timeout_seconds == 7


def test_a_former_name_is_not_free_for_another_handler(folder: Path) -> None:
    write(folder, "reg_renamed_first.py", RENAMED)
    write(folder, "reg_renamed_second.py", HANDLER.format(name="old_name"))
    with pytest.raises(SettingsError, match="two handlers are called 'old_name'"):
        load_handlers(["reg_renamed_first", "reg_renamed_second"])


def test_deprecated_names_lead_to_the_handlers_of_today() -> None:
    registry = load_handlers()
    former = {name: handler.info.name for name, handler in registry.items() if name != handler.info.name}
    assert former == DEPRECATED


@pytest.mark.parametrize("text", [None, "import a_module_that_is_not_there\n"])
def test_a_module_that_cannot_be_imported_is_named(folder: Path, text: str | None) -> None:
    if text:
        write(folder, "reg_broken.py", text)
    with pytest.raises(SettingsError, match="the handler module 'reg_broken' cannot be imported") as caught:
        load_handlers(["reg_broken"])
    assert "GEOMILL_HANDLERS" in caught.value.remedy


def test_an_unknown_handler_is_an_error_that_names_the_nearest() -> None:
    registry = load_handlers()
    with pytest.raises(NotFoundError, match="there is no handler 'ecco'; did you mean 'echo'"):
        registry["ecco"]
    assert "ecco" not in registry


def test_an_empty_registry_says_so() -> None:
    with pytest.raises(NotFoundError, match="there are none"):
        Registry({})["echo"]


def test_a_registry_is_a_mapping_in_order_that_cannot_be_changed() -> None:
    registry = load_handlers()
    assert list(registry) == sorted(registry)
    assert len(registry) == len(registry.info) == len(list(registry))
    assert registry.info["echo"] is registry["echo"].info
    with pytest.raises(TypeError):
        registry.info["new"] = registry.info["echo"]  # type: ignore[index]
    with pytest.raises(TypeError):
        registry["new"] = registry["echo"]  # type: ignore[index]
