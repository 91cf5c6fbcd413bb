"""Styles of other programs as styles of geomill."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ValidationError

from geomill.domain.assets.foreign_xml import NotConvertible
from geomill.domain.assets.qml import from_qml
from geomill.domain.assets.sld import from_sld
from geomill.domain.assets.style import STYLE, RasterStyle, VectorStyle


class StyleLanguage(StrEnum):
    """The languages that are converted. A source that brings a style in both means the same; QML says more."""

    QML = "qml"
    SLD = "sld"


_CONVERTERS = {StyleLanguage.QML: from_qml, StyleLanguage.SLD: from_sld}


def convert_style(language: StyleLanguage, text: str) -> tuple[RasterStyle | VectorStyle, list[str]]:
    """Return the style, and warnings about what was lost. Raises `NotConvertible`, or `InputError` if the text is not
    XML or too long."""
    document, warnings = _CONVERTERS[language](text)
    try:
        return STYLE.validate_python(document), warnings
    except ValidationError as error:
        raise NotConvertible(str(error.errors()[0]["msg"])) from error
