/** Links of an asset, as each program wants them. */

import type { LinksView } from "@/api/schema";

export interface LinkRow {
  title: string;
  text: string;
  /** Whether the text is an address that a browser can open. */
  opens?: boolean;
}

type Links = LinksView["links"];

export function linkRows(links: Links, signed: boolean): LinkRow[] {
  return [
    row("Map in the browser", links.viewer, true),
    row("QGIS, WMTS", links.wmts),
    row("QGIS, WMS", links.viewer?.replace("/viewer/", "/wms/")),
    row(
      "QGIS, OGC API Features",
      links.collection && !signed ? links.collection.replace(/\/collections\/.*$/, "") : "",
    ),
    row("Tiles (XYZ)", links.tiles),
    row("TileJSON", links.tilejson, true),
    row("Features as GeoJSON", links.features, true),
    row("Download", links.download, true),
    row("GDAL", gdal(links, signed)),
    row("Python", python(links)),
    row("STAC item", links.stac_item, true),
  ].filter((entry) => entry.text !== "");
}

function row(title: string, text: string | undefined, opens = false): LinkRow {
  return { title, text: text ?? "", opens };
}

function gdal(links: Links, signed: boolean): string {
  if (links.collection && !signed) return `ogrinfo "OAPIF_COLLECTION:${links.collection}"`;
  if (links.features) return `ogrinfo "${links.features}"`;
  if (links.download) return `gdalinfo "/vsicurl/${links.download}"`;
  return links.wmts ? `gdalinfo "WMTS:${links.wmts}"` : "";
}

function python(links: Links): string {
  if (links.features) return `geopandas.read_file("${links.features}")`;
  if (links.download) return `rasterio.open("${links.download}")`;
  return links.wmts ? `rasterio.open("WMTS:${links.wmts}")` : "";
}
