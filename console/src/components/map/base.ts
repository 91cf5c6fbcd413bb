/** The base map: coasts and borders of the world from our own files, or the tiles that the settings name. Colours are
 * those of the page, so the base follows light and dark. */

import type { LayerSpecification, SourceSpecification, StyleSpecification } from "maplibre-gl";
import worldUrl from "world-atlas/countries-50m.json?url";
import { bordersOf, landOf, type World } from "./world";

export interface BaseMapSetting {
  url: string;
  attribution: string;
}

let world: Promise<World> | undefined;

function readWorld(): Promise<World> {
  world ??= fetch(worldUrl).then((response) => {
    if (!response.ok) throw new Error(`the outline of the world could not be loaded: status ${response.status}`);
    return response.json() as Promise<World>;
  });
  return world;
}

export function mapColour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** The style of an empty map: the base alone. */
export async function baseStyle(setting: BaseMapSetting | null): Promise<StyleSpecification> {
  const background: LayerSpecification = {
    id: "sea",
    type: "background",
    paint: { "background-color": mapColour("--map-sea") },
  };
  if (setting) {
    const tiles: SourceSpecification = {
      type: "raster",
      tiles: [setting.url],
      tileSize: 256,
      attribution: setting.attribution,
    };
    return {
      version: 8,
      sources: { base: tiles },
      layers: [background, { id: "base", type: "raster", source: "base" }],
    };
  }
  const topology = await readWorld();
  const sources: Record<string, SourceSpecification> = {
    land: { type: "geojson", data: landOf(topology) },
    borders: { type: "geojson", data: bordersOf(topology) },
  };
  return {
    version: 8,
    sources,
    layers: [
      background,
      { id: "land", type: "fill", source: "land", paint: { "fill-color": mapColour("--map-land") } },
      { id: "coast", type: "line", source: "land", paint: { "line-color": mapColour("--map-line"), "line-width": 1 } },
      {
        id: "borders",
        type: "line",
        source: "borders",
        paint: { "line-color": mapColour("--map-line"), "line-width": 0.75, "line-dasharray": [3, 2] },
      },
    ],
  };
}
