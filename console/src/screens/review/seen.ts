/** Differences of the features in the view: both revisions are asked for the features of the same box. */

import { useQuery } from "@tanstack/react-query";
import type { Feature, FeatureCollection } from "geojson";
import type { GeoJSONSource, Map as MapLibre } from "maplibre-gl";
import { useEffect, useState } from "react";
import { problemOf, unreachable } from "@/api/problem";
import { mapColour } from "@/components/map/base";
import { collection, compareFeatures, type FeatureDifferences } from "./features";
import type { AssetDetails } from "./queries";

const MOST = 5_000;
const SOURCE = "differences";
const SETTLE_MILLISECONDS = 400;

export interface SeenDifferences {
  differences: FeatureDifferences | null;
  tooMany: boolean;
  error: unknown;
}

interface FeaturePage extends FeatureCollection {
  numberMatched?: number;
}

/** Reads the features of a box, as everybody or as the caller. Null if there are too many to compare. */
async function readFeatures(
  assetId: string,
  box: string,
  credentials: RequestCredentials,
  signal: AbortSignal,
): Promise<Feature[] | null> {
  const query = new URLSearchParams({ bbox: box, limit: String(MOST) });
  const address = `/vector/collections/${encodeURIComponent(assetId)}/items?${query}`;
  const headers = { Accept: "application/geo+json" };
  const response = await fetch(address, { credentials, cache: "no-store", headers, signal }).catch((error: unknown) => {
    throw signal.aborted ? error : unreachable();
  });
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw problemOf(response, body);
  const page = body as FeaturePage;
  return (page.numberMatched ?? page.features.length) > MOST ? null : page.features;
}

export function useSeenDifferences(map: MapLibre | null, asset: AssetDetails, wanted: boolean): SeenDifferences {
  const box = useViewBox(wanted ? map : null);
  const idColumn = asset.requests[0]?.processing_options?.id_column;
  const query = useQuery({
    queryKey: ["review", asset.asset_id, asset.revision, "differences", box],
    queryFn: async ({ signal }) => {
      const [before, after] = await Promise.all([
        readFeatures(asset.asset_id, box ?? "", "omit", signal),
        readFeatures(asset.asset_id, box ?? "", "same-origin", signal),
      ]);
      if (!before || !after) return { differences: null, tooMany: true };
      const key = typeof idColumn === "string" ? idColumn : null;
      return { differences: compareFeatures(before, after, key), tooMany: false };
    },
    enabled: wanted && box !== null,
    staleTime: 60_000,
    placeholderData: (earlier, earlierQuery) =>
      earlierQuery?.queryKey[1] === asset.asset_id && earlierQuery.queryKey[2] === asset.revision ? earlier : undefined,
  });
  return { differences: query.data?.differences ?? null, tooMany: query.data?.tooMany ?? false, error: query.error };
}

/** The box that the map shows, once it has come to rest. */
function useViewBox(map: MapLibre | null): string | null {
  const [box, setBox] = useState<string | null>(null);
  useEffect(() => {
    if (!map) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const rested = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const bounds = map.getBounds();
        const inside = (value: number, most: number) => Math.max(-most, Math.min(most, value)).toFixed(6);
        const [west, south] = [inside(bounds.getWest(), 180), inside(bounds.getSouth(), 90)];
        setBox([west, south, inside(bounds.getEast(), 180), inside(bounds.getNorth(), 90)].join(","));
      }, SETTLE_MILLISECONDS);
    };
    rested();
    map.on("moveend", rested);
    return () => {
      clearTimeout(timer);
      map.off("moveend", rested);
    };
  }, [map]);
  return box;
}

/** Marks the differences on one of the two maps: what came on the new one, what went on the old one. */
export function drawDifferences(
  map: MapLibre | null,
  differences: FeatureDifferences | null,
  side: "old" | "new",
  visible: boolean,
): void {
  if (!map?.getStyle()) return;
  const marked = !visible || !differences ? [] : sideOf(differences, side);
  const data: FeatureCollection = { type: "FeatureCollection", features: marked };
  const source = map.getSource<GeoJSONSource>(SOURCE);
  if (source) return void source.setData(data);
  if (marked.length === 0) return;
  map.addSource(SOURCE, { type: "geojson", data });
  const colour: unknown = [
    "match",
    ["get", "kind"],
    ...KINDS.flatMap((kind) => [kind, mapColour(`--${kind}`)]),
    "#000000",
  ];
  const paint = (name: string, more: Record<string, unknown>) => ({ [name]: colour, ...more }) as never;
  const shape = (...kinds: string[]) => ["in", ["geometry-type"], ["literal", kinds]] as never;
  map.addLayer({
    id: `${SOURCE}-areas`,
    type: "fill",
    source: SOURCE,
    filter: shape("Polygon", "MultiPolygon"),
    paint: paint("fill-color", { "fill-opacity": 0.5 }),
  });
  map.addLayer({
    id: `${SOURCE}-lines`,
    type: "line",
    source: SOURCE,
    filter: shape("Polygon", "MultiPolygon", "LineString", "MultiLineString"),
    paint: paint("line-color", { "line-width": 1.5 }),
  });
  map.addLayer({
    id: `${SOURCE}-points`,
    type: "circle",
    source: SOURCE,
    filter: shape("Point", "MultiPoint"),
    paint: paint("circle-color", { "circle-radius": 6, "circle-stroke-width": 1.5, "circle-stroke-color": "#ffffff" }),
  });
}

const KINDS = ["added", "changed", "removed"];

function sideOf(differences: FeatureDifferences, side: "old" | "new"): Feature[] {
  return side === "new"
    ? [...collection(differences.added, "added").features, ...collection(differences.changed, "changed").features]
    : [
        ...collection(differences.removed, "removed").features,
        ...collection(differences.changedFrom, "changed").features,
      ];
}
