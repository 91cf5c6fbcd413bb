/** The map of the screen: what is on it, where it was clicked, and which feature is chosen. */

import { useQuery } from "@tanstack/react-query";
import type { Feature } from "geojson";
import type { GeoJSONSource, LayerSpecification, Map as MapLibre, MapMouseEvent } from "maplibre-gl";
import { useCallback, useEffect, useRef, useState } from "react";
import type { AssetDetails, RasterStyle, VectorStyle } from "@/api/schema";
import { readService } from "@/api/services";
import { layerIds, type Picture, usePictures } from "@/map/layers";
import type { Place } from "@/map/Probe";
import type { Style } from "@/map/style";
import { type TilePlace, useTilePlace } from "@/map/tilejson";
import { useAddresses } from "@/shell/address";

export interface Chosen {
  /** The name of the collection. */
  name: string;
  id: string;
}

export interface MapState {
  map: MapLibre | null;
  onReady: (map: MapLibre) => void;
  tiles: TilePlace | null;
  tilesError: unknown;
  retryTiles: () => void;
  pointer: Place | null;
  onPointer: (longitude: number, latitude: number) => void;
  /** Where the map was clicked. */
  place: Place | null;
  onClick: (event: MapMouseEvent) => void;
  chosen: Chosen | null;
  feature: Feature | undefined;
  choose: (chosen: Chosen | null, fly?: boolean) => void;
  close: () => void;
}

const HIGHLIGHT = "chosen";
const KEY = "asset";

function placeOf(text: string | null): Place | null {
  const [longitude, latitude, ...more] = (text ?? "").split(",").map(Number);
  if (more.length > 0 || longitude === undefined || latitude === undefined || text === null) return null;
  return Number.isFinite(longitude) && Math.abs(latitude) <= 90 ? { longitude, latitude } : null;
}

function chosenOf(text: string | null, names: readonly string[]): Chosen | null {
  const [, place, id] = /^(?:(\d+)\.)?(\d+)$/.exec(text ?? "") ?? [];
  const name = names[Number(place ?? 0)];
  return id !== undefined && name !== undefined ? { name, id } : null;
}

export function useMapState(
  asset: AssetDetails,
  names: readonly string[],
  style: Style | null,
  revision: number | null,
): MapState {
  const kind = asset.data_type === "vector" ? "vector" : "raster";
  const tiles = useTilePlace(kind, kind === "vector" ? names : [asset.asset_id], revision);
  const [values, setAddress] = useAddresses();
  const [pointer, setPointer] = useState<Place | null>(null);
  const place = placeOf(values.get("click"));
  const chosen = chosenOf(values.get("feature"), names);
  const feature = useFeature(chosen, revision);
  const fly = useRef(false);

  const common = { key: KEY, bounds: tiles.place?.bounds };
  const pictures: Picture[] = !tiles.place
    ? []
    : kind === "raster"
      ? [{ ...common, kind, name: asset.asset_id, style: style as RasterStyle | null, maxzoom: tiles.place.maxzoom }]
      : [{ ...common, kind, names, style: style as VectorStyle | null }];
  const above = useCallback((target: MapLibre) => highlight(target, feature), [feature]);
  const { map, onReady } = usePictures(pictures, above);
  useEffect(() => {
    if (map?.style) highlight(map, feature);
    const box = fly.current ? boxOf(feature) : null;
    if (map && box) {
      fly.current = false;
      map.fitBounds(box, { padding: 80, maxZoom: 16, duration: 400 });
    }
  }, [map, feature]);

  const choose = useCallback(
    (next: Chosen | null, flies = false) => {
      fly.current = flies;
      const at = next ? names.indexOf(next.name) : -1;
      setAddress({ feature: next && (at > 0 ? `${at}.${next.id}` : next.id), ...(flies ? { click: null } : {}) });
    },
    [setAddress, names],
  );
  const onClick = (event: MapMouseEvent) => {
    const { lng, lat } = event.lngLat;
    const click = `${lng.toFixed(6)},${lat.toFixed(6)}`;
    const [picture] = pictures;
    if (picture?.kind !== "vector") return setAddress({ click });
    const layers = layerIds(picture).filter((id) => event.target.getLayer(id));
    const [hit] = event.target.queryRenderedFeatures(event.point, { layers });
    const at = Number(hit?.source.split("-").at(-1) ?? 0);
    const id = hit?.properties.gid ?? hit?.id;
    setAddress({
      click: hit ? click : null,
      feature: id === undefined ? null : at > 0 ? `${at}.${id}` : String(id),
    });
  };
  return {
    map,
    onReady,
    tiles: tiles.place,
    tilesError: tiles.error,
    retryTiles: tiles.refetch,
    pointer,
    onPointer: useCallback((longitude, latitude) => setPointer({ longitude, latitude }), []),
    place,
    onClick,
    chosen,
    feature,
    choose,
    close: () => setAddress({ click: null, feature: null }),
  };
}

/** The chosen feature with its whole geometry: a tile has only a part of it. */
function useFeature(chosen: Chosen | null, revision: number | null): Feature | undefined {
  const path = `/vector/collections/${encodeURIComponent(chosen?.name ?? "")}/items/${chosen?.id}`;
  const answer = useQuery({
    queryKey: ["feature", path, revision],
    queryFn: ({ signal }) => readService<Feature>(path, signal),
    enabled: chosen !== null && revision !== null,
    staleTime: 60_000,
  });
  return chosen ? answer.data : undefined;
}

const LAYERS: readonly Pick<LayerSpecification, "id" | "type" | "paint">[] = [
  { id: `${HIGHLIGHT}-case`, type: "line", paint: { "line-color": "#ffffff", "line-width": 5 } },
  { id: `${HIGHLIGHT}-line`, type: "line", paint: { "line-color": "#d4007a", "line-width": 2.5 } },
  {
    id: `${HIGHLIGHT}-point`,
    type: "circle",
    paint: { "circle-radius": 8, "circle-opacity": 0, "circle-stroke-color": "#d4007a", "circle-stroke-width": 3 },
  },
];

function highlight(map: MapLibre, feature: Feature | undefined): void {
  const data = { type: "FeatureCollection" as const, features: feature ? [feature] : [] };
  const source = map.getSource<GeoJSONSource>(HIGHLIGHT);
  if (source) source.setData(data);
  else if (feature) map.addSource(HIGHLIGHT, { type: "geojson", data });
  if (!map.getSource(HIGHLIGHT)) return;
  for (const layer of LAYERS) {
    if (map.getLayer(layer.id)) map.moveLayer(layer.id);
    else
      map.addLayer({
        ...layer,
        source: HIGHLIGHT,
        ...(layer.type === "circle" ? { filter: ["==", ["geometry-type"], "Point"] } : {}),
      } as LayerSpecification);
  }
}

/** The extent of a feature, or null if it has no geometry. */
export function boxOf(feature: Feature | undefined): [number, number, number, number] | null {
  const box: [number, number, number, number] = [Infinity, Infinity, -Infinity, -Infinity];
  const visit = (part: unknown): void => {
    if (!Array.isArray(part)) return;
    const [x, y] = part as unknown[];
    if (typeof x === "number" && typeof y === "number") {
      box[0] = Math.min(box[0], x);
      box[1] = Math.min(box[1], y);
      box[2] = Math.max(box[2], x);
      box[3] = Math.max(box[3], y);
    } else for (const inner of part) visit(inner);
  };
  if (feature?.geometry && "coordinates" in feature.geometry) visit(feature.geometry.coordinates);
  return Number.isFinite(box[0]) ? box : null;
}
