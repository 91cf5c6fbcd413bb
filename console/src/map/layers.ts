/** Puts assets on a map and keeps them as the screen says. Drawing twice is harmless, so a screen draws whenever
 * something has changed: what is new is added, what is old is changed in place, and old tiles stay until new ones come. */

import type { LayerSpecification, Map as MapLibre, RasterTileSource } from "maplibre-gl";
import { useCallback, useEffect, useRef, useState } from "react";
import type { RasterStyle, VectorStyle } from "@/api/schema";
import type { Bounds } from "@/components/map/MapFrame";
import { tileQuery, vectorLayers } from "./style";

interface CommonPicture {
  /** The name of the picture on this map. */
  key: string;
  opacity?: number;
  visible?: boolean;
  /** Where the data is; tiles elsewhere are not asked for. */
  bounds?: Bounds;
  minzoom?: number;
  maxzoom?: number;
  /** Put before the paths, for another server; by default this gateway. */
  root?: string;
  /** More parameters of every tile, such as those of a signed link. */
  query?: string;
}

export interface RasterPicture extends CommonPicture {
  kind: "raster";
  /** The id of an asset, or `ASSET.SCENE`. */
  name: string;
  style: RasterStyle | null;
}

export interface VectorPicture extends CommonPicture {
  kind: "vector";
  /** The names of the collections: see `collectionsOf`. */
  names: readonly string[];
  style: VectorStyle | null;
}

export type Picture = RasterPicture | VectorPicture;

type PaintName = Parameters<MapLibre["setPaintProperty"]>[1];

const MATRIX = "WebMercatorQuad";
const TILE = "{z}/{x}/{y}";
const TILE_SIZE = 512;

function joined(...queries: (string | undefined)[]): string {
  const query = queries.filter(Boolean).join("&");
  return query ? `?${query}` : "";
}

/** The address of a raster's tiles. MapLibre loads them in a worker, so it is whole. */
export function rasterTiles(picture: RasterPicture): string {
  const root = picture.root ?? location.origin;
  const query = joined(tileQuery(picture.style), `tilesize=${TILE_SIZE}`, picture.query);
  return `${root}/raster/assets/${encodeURIComponent(picture.name)}/tiles/${MATRIX}/${TILE}${query}`;
}

export function vectorTiles(picture: VectorPicture, name: string): string {
  const root = picture.root ?? location.origin;
  return `${root}/vector/collections/${encodeURIComponent(name)}/tiles/${MATRIX}/${TILE}${joined(picture.query)}`;
}

interface Part {
  source: string;
  tiles: string;
  layers: LayerSpecification[];
}

function partsOf(picture: Picture): Part[] {
  if (picture.kind === "vector") {
    return picture.names.map((name, place) => {
      const source = `${picture.key}-${place}`;
      return {
        source,
        tiles: vectorTiles(picture, name),
        layers: vectorLayers(picture.style, source, `${source}-`, picture.opacity ?? 1),
      };
    });
  }
  const layer: LayerSpecification = {
    id: `${picture.key}-raster`,
    type: "raster",
    source: picture.key,
    paint: {
      "raster-opacity": (picture.opacity ?? 1) * (picture.style?.opacity ?? 1),
      "raster-fade-duration": 0,
      "raster-resampling": "nearest",
    },
  };
  return [{ source: picture.key, tiles: rasterTiles(picture), layers: [layer] }];
}

/** The layers of a picture on the map, for clicks and comparisons. */
export function layerIds(picture: Picture): string[] {
  return partsOf(picture).flatMap((part) => part.layers.map((layer) => layer.id));
}

/** Draws a picture, or changes it to what it is now. `before` is the layer that stays above it. */
export function draw(map: MapLibre, picture: Picture, before?: string): void {
  for (const part of partsOf(picture)) {
    const source = map.getSource<RasterTileSource>(part.source);
    if (!source) {
      const { minzoom, maxzoom, bounds } = picture;
      const where = {
        ...(bounds ? { bounds: withinWorld(bounds) } : {}),
        ...(minzoom === undefined ? {} : { minzoom }),
        ...(maxzoom === undefined ? {} : { maxzoom }),
      };
      const common = { tiles: [part.tiles], ...where };
      map.addSource(
        part.source,
        picture.kind === "raster" ? { type: "raster", tileSize: TILE_SIZE, ...common } : { type: "vector", ...common },
      );
    } else if (source.tiles?.[0] !== part.tiles) source.setTiles([part.tiles]); // MapLibre sets them once they are loaded
    for (const layer of part.layers) drawLayer(map, layer, picture.visible ?? true, before);
  }
}

function drawLayer(map: MapLibre, layer: LayerSpecification, visible: boolean, before?: string): void {
  if (!map.getLayer(layer.id)) map.addLayer(layer, before && map.getLayer(before) ? before : undefined);
  else {
    for (const [key, value] of Object.entries(layer.paint ?? {})) {
      const name = key as PaintName;
      if (JSON.stringify(map.getPaintProperty(layer.id, name)) !== JSON.stringify(value))
        map.setPaintProperty(layer.id, name, value);
    }
  }
  map.setLayoutProperty(layer.id, "visibility", visible ? "visible" : "none");
}

/** Takes a picture off the map. */
export function erase(map: MapLibre, key: string): void {
  for (const layer of map.getStyle().layers) {
    if ("source" in layer && isOf(layer.source, key)) map.removeLayer(layer.id);
  }
  for (const source of Object.keys(map.getStyle().sources)) {
    if (isOf(source, key)) map.removeSource(source);
  }
}

function isOf(source: string, key: string): boolean {
  return source === key || (source.startsWith(`${key}-`) && /^\d+$/.test(source.slice(key.length + 1)));
}

/** A source's extent cannot cross the antimeridian; one that does is the whole band of its latitudes. */
function withinWorld([west, south, east, north]: Bounds): Bounds {
  return east > 180 || west < -180 ? [-180, south, 180, north] : [west, south, east, north];
}

/** Keeps pictures on a map, the first at the bottom. Give `onReady` to the `MapFrame`. `above` draws what lies over them. */
export function usePictures(
  pictures: readonly Picture[],
  above?: (map: MapLibre) => void,
): { onReady: (map: MapLibre) => void; map: MapLibre | null } {
  const [map, setMap] = useState<MapLibre | null>(null);
  const drawn = useRef<string[]>([]);
  const latest = useRef({ pictures, above });
  latest.current = { pictures, above };
  const drawAll = useCallback((target: MapLibre) => {
    const keys = latest.current.pictures.map((picture) => picture.key);
    for (const key of drawn.current) if (!keys.includes(key)) erase(target, key);
    for (const picture of latest.current.pictures) draw(target, picture);
    drawn.current = keys;
    latest.current.above?.(target);
  }, []);
  const shape = JSON.stringify(pictures);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` says when the pictures change
  useEffect(() => {
    if (map?.style) drawAll(map);
  }, [shape, map, drawAll]);
  const onReady = useCallback(
    (ready: MapLibre) => {
      drawAll(ready);
      setMap(ready);
      ready.once("remove", () => setMap((current) => (current === ready ? null : current)));
    },
    [drawAll],
  );
  return { onReady, map };
}
