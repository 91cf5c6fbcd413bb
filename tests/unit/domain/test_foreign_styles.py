"""Styles of QGIS and SLD become styles of geomill, or say why they cannot."""

from __future__ import annotations

from typing import Any

import pytest

from geomill.domain.assets.foreign_xml import NotConvertible
from geomill.domain.assets.qml import from_qml
from geomill.domain.assets.sld import from_sld
from geomill.domain.assets.style import STYLE, RasterStyle, VectorStyle
from geomill.errors import InputError

HEAD = "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"


def shader(kind: str, items: str) -> str:
    return (
        f'{HEAD}<qgis version="3.34"><pipe><rasterrenderer type="singlebandpseudocolor" band="2"><rastershader>'
        f'<colorrampshader colorRampType="{kind}">{items}</colorrampshader></rastershader></rasterrenderer>'
        "</pipe></qgis>"
    )


ITEMS = (
    '<item value="0" color="#000000" alpha="255" label="low"/><item value="10" color="#ff0000" alpha="128" label=""/>'
)


def raster(document: dict[str, Any]) -> RasterStyle:
    style = STYLE.validate_python(document)
    assert isinstance(style, RasterStyle)
    return style


def vector(document: dict[str, Any]) -> VectorStyle:
    style = STYLE.validate_python(document)
    assert isinstance(style, VectorStyle)
    return style


def test_ramps_steps_and_values_of_qgis() -> None:
    ramp = raster(from_qml(shader("INTERPOLATED", ITEMS))[0])
    assert ramp.bidx == [2]
    assert [(stop.value, stop.color, stop.label) for stop in ramp.ramp or ()] == [
        (0, "#000000", "low"),
        (10, "#ff000080", None),
    ]
    steps = raster(from_qml(shader("DISCRETE", ITEMS + '<item value="inf" color="#00ff00"/>'))[0]).classes or []
    assert [(step.minimum, step.maximum) for step in steps] == [(None, 0), (0, 10), (10, None)]
    exact = raster(from_qml(shader("EXACT", ITEMS))[0]).classes or []
    assert [entry.value for entry in exact] == [0, 10]


def test_palettes_and_bands_of_qgis() -> None:
    palette = (
        '<qgis><rasterrenderer type="paletted" band="1"><colorPalette><paletteEntry value="3" color="#00ff00"'
        ' label="wood"/></colorPalette></rasterrenderer></qgis>'
    )
    [entry] = raster(from_qml(palette)[0]).classes or []
    assert (entry.value, entry.color, entry.label) == (3, "#00ff00", "wood")
    enhanced = "".join(
        f"<{name}ContrastEnhancement><minValue>1</minValue><maxValue>9</maxValue></{name}ContrastEnhancement>"
        for name in ("red", "green", "blue")
    )
    bands = 'type="multibandcolor" redBand="4" greenBand="3" blueBand="2"'
    style = raster(from_qml(f"<qgis><rasterrenderer {bands}>{enhanced}</rasterrenderer></qgis>")[0])
    assert (style.bidx, style.rescale) == ([4, 3, 2], [(1, 9)] * 3)


SYMBOL = (
    '<symbol name="{name}" type="fill" alpha="0.5"><layer class="SimpleFill"><Option type="Map">'
    '<Option name="color" value="{color}"/><Option name="outline_color" value="1,2,3,255"/>'
    '<Option name="outline_width" value="1"/></Option></layer></symbol>'
)


def test_categories_and_ranges_of_qgis() -> None:
    symbols = SYMBOL.format(name=0, color="0,255,0,255,rgb:0,1,0,1") + SYMBOL.format(name=1, color="0,0,255,255")
    categories = '<category value="wood" symbol="0" label="Wood"/><category value="" symbol="1" label=""/>'
    text = (
        f'<qgis><renderer-v2 type="categorizedSymbol" attr="kind"><categories>{categories}</categories>'
        f"<symbols>{symbols}</symbols></renderer-v2></qgis>"
    )
    style = vector(from_qml(text)[0])
    assert (style.attribute, style.fill_opacity, style.fill_color) == ("kind", 0.5, "#0000ff")
    assert [(entry.value, entry.color, entry.label) for entry in style.classes] == [("wood", "#00ff00", "Wood")]
    ranges = '<range lower="0" upper="5" symbol="0" label=""/><range lower="5" upper="9" symbol="1" label=""/>'
    graduated = (
        f'<qgis><renderer-v2 type="graduatedSymbol" attr="size"><ranges>{ranges}</ranges>'
        f"<symbols>{symbols}</symbols></renderer-v2></qgis>"
    )
    assert [(entry.minimum, entry.maximum) for entry in vector(from_qml(graduated)[0]).classes] == [(0, 5), (5, 9)]


@pytest.mark.parametrize(
    ("text", "opacity"), [("0.25", 0.25), ("0", 0), ("1", 1), ("2", 1), ("-1", 1), ("nan", 1), ("x", 1)]
)
def test_the_opacity_of_a_layer_is_that_of_the_style(text: str, opacity: float) -> None:
    gray = f'<qgis><pipe><rasterrenderer type="singlebandgray" grayBand="1" opacity="{text}"/></pipe></qgis>'
    assert raster(from_qml(gray)[0]).opacity == opacity
    plain = (
        '<qgis><renderer-v2 type="singleSymbol"><symbols><symbol type="fill"><layer class="SimpleFill"/></symbol>'
        f"</symbols></renderer-v2><layerOpacity>{text}</layerOpacity></qgis>"
    )
    assert vector(from_qml(plain)[0]).opacity == opacity
    sld = SLD.format(f"<RasterSymbolizer><Opacity>{text}</Opacity></RasterSymbolizer>")
    assert raster(from_sld(sld)[0]).opacity == opacity


SLD = '<Sld xmlns="http://www.opengis.net/sld" xmlns:ogc="http://www.opengis.net/ogc">{}</Sld>'
RULE = (
    "<Rule><Title>{title}</Title><ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>{name}</ogc:PropertyName>"
    "<ogc:Literal>{value}</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter><PolygonSymbolizer><Fill>"
    '<CssParameter name="fill">{color}</CssParameter><CssParameter name="fill-opacity">0</CssParameter></Fill>'
    "</PolygonSymbolizer></Rule>"
)


def test_colour_maps_and_rules_of_sld() -> None:
    entries = '<ColorMapEntry color="#000000" quantity="0"/><ColorMapEntry color="#ffffff" quantity="9" opacity="0.5"/>'
    ramp = raster(from_sld(SLD.format(f"<RasterSymbolizer><ColorMap>{entries}</ColorMap></RasterSymbolizer>"))[0])
    assert [(stop.value, stop.color) for stop in ramp.ramp or ()] == [(0, "#000000"), (9, "#ffffff80")]
    table = f'<RasterSymbolizer><ColorMap type="intervals">{entries}</ColorMap></RasterSymbolizer>'
    assert [entry.maximum for entry in raster(from_sld(SLD.format(table))[0]).classes or ()] == [0, 9]
    rules = RULE.format(title="Wood", name="kind", value="wood", color="#00ff00")
    rules += RULE.format(title="Seven", name="kind", value=7, color="#ff0000")
    rules += RULE.format(title="Other", name="size", value=7, color="#0000ff")
    document, warnings = from_sld(SLD.format(rules))
    style = vector(document)
    assert [(entry.value, entry.color, entry.label) for entry in style.classes] == [
        ("wood", "#00ff00", "Wood"),
        (7, "#ff0000", "Seven"),
    ]
    assert (style.fill_opacity, warnings) == (0, ["the rule 'Other' is left out"])


COMPUTED = '<renderer-v2 type="categorizedSymbol" attr="a || b"><symbols><symbol name="0" type="fill"/></symbols>'


@pytest.mark.parametrize(
    "text",
    [
        "<qgis/>",
        '<qgis><rasterrenderer type="hillshade" band="1"/></qgis>',
        '<qgis><renderer-v2 type="RuleRenderer"/></qgis>',
        f"<qgis>{COMPUTED}</renderer-v2></qgis>",
    ],
)
def test_a_style_without_a_counterpart_says_so(text: str) -> None:
    with pytest.raises(NotConvertible):
        from_qml(text)


@pytest.mark.parametrize(
    "text",
    [
        "no xml",
        '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        '<!DOCTYPE a [<!ATTLIST b c CDATA "every b has this text">]><a><b/></a>',
        "<a>" * 1000,
        f"<a>{'<b/>' * 21_000}</a>",
        "x" * 500_000,
    ],
    ids=["text", "entity", "attributes", "unclosed", "elements", "long"],
)
def test_dangerous_or_broken_xml_is_refused(text: str) -> None:
    for convert in (from_qml, from_sld):
        with pytest.raises(InputError):
            convert(text)


@pytest.mark.parametrize(
    ("convert", "text"),
    [
        (from_qml, '<qgis><rasterrenderer type="paletted" band="inf"/></qgis>'),
        (from_qml, shader("EXACT", '<item value="nan" color="#000000"/>')),
        (from_qml, shader("EXACT", '<item value="1" color="#000000" alpha="-inf"/>').replace('"1"', '""')),
    ],
    ids=["endless band", "no number", "no value"],
)
def test_numbers_that_are_none_have_no_counterpart(convert: Any, text: str) -> None:
    with pytest.raises(NotConvertible):
        convert(text)


def test_a_channel_or_a_bound_that_is_no_number_is_left_out() -> None:
    channel = (
        "<ChannelSelection><GrayChannel><SourceChannelName>inf</SourceChannelName></GrayChannel></ChannelSelection>"
    )
    assert from_sld(SLD.format(f"<RasterSymbolizer>{channel}</RasterSymbolizer>"))[0] == {"kind": "raster"}
    rule = RULE.format(title="No bound", name="kind", value="", color="#00ff00").replace("EqualTo", "LessThan")
    with pytest.raises(NotConvertible):
        from_sld(SLD.format(rule))


def test_a_quoted_column_of_qgis_may_have_any_name() -> None:
    text = COMPUTED.replace("a || b", "&quot;land use&quot;").replace("</symbols>", "</symbols><categories/>")
    assert from_qml(f"<qgis>{text}</renderer-v2></qgis>")[0]["attribute"] == "land use"
