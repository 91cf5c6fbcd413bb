import { expect, it } from "vitest";
import { linkRows } from "./linkRows";

const text = (links: Record<string, string>, title: string, signed = false) =>
  linkRows(links, signed).find((row) => row.title === title)?.text;

it("leaves out what an asset lacks", () => {
  expect(linkRows({ viewer: "http://x/viewer/a" }, false).map((row) => row.title)).toEqual([
    "Map in the browser",
    "QGIS, WMS",
  ]);
});

it("gives GDAL the collection, or the features if the link is signed", () => {
  const links = {
    collection: "http://x/vector/collections/a",
    features: "http://x/vector/collections/a/items?geomill_link=1",
  };
  expect(text(links, "GDAL")).toBe('ogrinfo "OAPIF_COLLECTION:http://x/vector/collections/a"');
  expect(text(links, "GDAL", true)).toBe(`ogrinfo "${links.features}"`);
  expect(text(links, "QGIS, OGC API Features")).toBe("http://x/vector");
  expect(text(links, "QGIS, OGC API Features", true)).toBeUndefined();
});

it("gives GDAL and Python the file of a raster, or the WMTS of a mosaic", () => {
  expect(text({ download: "http://x/f.tif", wmts: "http://x/w.xml" }, "GDAL")).toBe(
    'gdalinfo "/vsicurl/http://x/f.tif"',
  );
  expect(text({ wmts: "http://x/w.xml" }, "Python")).toBe('rasterio.open("WMTS:http://x/w.xml")');
});
