"""The credential in a request: one, or none, or a refusal; whatever is sent."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from geomill.api.credentials import credential_of
from geomill.domain.access.api_key import ApiKey, Secret
from geomill.errors import Unauthenticated

KEY = f"gm_0123456789ab_{'0f' * 32}"


def headers(*pairs: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.encode(), value.encode("latin-1")) for name, value in pairs])


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], None),
        ([("authorization", f"Bearer {KEY}")], KEY),
        ([("authorization", f"bearer   {KEY} ")], KEY),
        ([("x-api-key", f" {KEY}")], KEY),
        ([("x-api-key", KEY), ("authorization", f"Bearer {KEY}")], KEY),
    ],
)
def test_where_it_is_found(pairs: list[tuple[str, str]], expected: str | None) -> None:
    assert credential_of(headers(*pairs)) == expected


latin = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\x00"), max_size=60)


@given(
    st.lists(
        st.tuples(st.sampled_from(["authorization", "x-api-key", "x-other"]), latin | latin.map("Bearer {}".format))
    )
)
@example([("authorization", "Bearer")])
@example([("authorization", ""), ("x-api-key", "")])
@example([("x-api-key", "\xff")])
def test_any_headers(pairs: list[tuple[str, str]]) -> None:
    try:
        credential = credential_of(headers(*pairs))
    except Unauthenticated as error:
        shown = str(error)
        assert not any(len(value) > 12 and value in shown for _, value in pairs)
        return
    if credential is None:
        assert all(name == "x-other" for name, _ in pairs)
    else:
        assert credential
        assert credential.isascii()
        assert any(credential in value for name, value in pairs if name != "x-other")


@given(st.text(max_size=100) | st.from_regex(r"gm_[0-9a-z]{10,14}_[0-9a-f]{62,66}\n?", fullmatch=True))
@example(KEY + "\n")
@example(KEY.upper())
def test_any_text_as_a_key(text: str) -> None:
    secret = Secret.parse(text)
    assert secret is None or secret.reveal() == text


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret.new()
    assert Secret.parse(secret.reveal()) == secret
    shown = f"{secret!r} {secret} {secret.hash()}"
    assert secret.reveal().rsplit("_", 1)[1] not in shown
    assert len({Secret.new().reveal() for _ in range(100)}) == 100
    key = ApiKey.model_construct(key_id="a", secret_hash=secret.hash(), name="n", roles=[])
    assert secret.hash() not in repr(key)
    assert key.fits(secret)
    assert not key.fits(Secret.new())
