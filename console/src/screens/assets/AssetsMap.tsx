/** The extents of the listed assets on a map. A small one is a dot, so that it is seen from afar. */

import type { FeatureCollection } from "geojson";
import type { ExpressionSpecification, GeoJSONSource, Map as MapLibre, MapMouseEvent } from "maplibre-gl";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { AssetView } from "@/api/schema";
import { BY_PAGE, MapFrame } from "@/components/map/MapFrame";
import { useMapAddress } from "@/map/address";
import { boundsOf, unionOf } from "@/map/outputs";
import { isDark } from "@/shell/theme";

interface AssetsMapProps {
  assets: readonly AssetView[];
  pointed: string | null;
  onPoint: (id: string | null) => void;
  onOpen: (id: string) => void;
}

export function extentsOf(assets: readonly AssetView[]): FeatureCollection {
  return {
    type: "FeatureCollection",
    features: assets.flatMap((asset) => {
      const box = boundsOf(asset.bbox);
      if (!box || asset.deleted_at) return [];
      const [west, south, east, north] = box;
      const properties = { id: asset.asset_id, name: asset.title ?? asset.stac_item_id };
      const ring = [
        [west, south],
        [east, south],
        [east, north],
        [west, north],
        [west, south],
      ];
      return [
        { type: "Feature" as const, properties, geometry: { type: "Polygon" as const, coordinates: [ring] } },
        {
          type: "Feature" as const,
          properties,
          geometry: { type: "Point" as const, coordinates: [(west + east) / 2, (south + north) / 2] },
        },
      ];
    }),
  };
}

const SOURCE = "extents";

export function AssetsMap({ assets, pointed, onPoint, onOpen }: AssetsMapProps) {
  const address = useMapAddress();
  const [map, setMap] = useState<MapLibre | null>(null);
  const data = useMemo(() => extentsOf(assets), [assets]);
  const bounds = useMemo(
    () => unionOf(assets.map((asset) => boundsOf(asset.bbox)).filter((box) => box !== undefined)),
    [assets],
  );
  const latest = useRef({ data, pointed });
  latest.current = { data, pointed };
  const draw = useCallback((target: MapLibre) => drawExtents(target, latest.current.data, latest.current.pointed), []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: data and pointed say when to draw again
  useEffect(() => {
    if (map?.style) draw(map);
  }, [map, data, pointed, draw]);
  useFit(map, bounds, address.view !== null);
  const idAt = (event: MapMouseEvent) => {
    if (!event.target.getLayer("extent-fill")) return null;
    const layers = ["extent-dot", "extent-fill"];
    const hits = event.target.queryRenderedFeatures(event.point, { layers });
    return (hits[0]?.properties.id as string | undefined) ?? null;
  };
  useEffect(() => {
    if (!map) return;
    const moved = (event: MapMouseEvent) => {
      const id = idAt(event);
      map.getCanvas().style.cursor = id ? "pointer" : "";
      onPoint(id);
    };
    map.on("mousemove", moved);
    return () => void map.off("mousemove", moved);
  });
  return (
    <MapFrame
      label="Map of the listed assets"
      bounds={bounds}
      {...address}
      onReady={(ready) => {
        draw(ready);
        setMap(ready);
        ready.once("remove", () => setMap((current) => (current === ready ? null : current)));
      }}
      onClick={(event) => {
        const id = idAt(event);
        if (id) onOpen(id);
      }}
    />
  );
}

/** Shows all when the list first has places, and when it has others, unless somebody has moved the map. */
function useFit(map: MapLibre | null, bounds: ReturnType<typeof unionOf>, moved: boolean): void {
  const text = bounds?.join(",");
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another extent moves the map
  useEffect(() => {
    if (map && bounds && !moved) map.fitBounds(bounds, { padding: 60, maxZoom: 9, animate: false }, BY_PAGE);
  }, [map, text]);
}

function drawExtents(map: MapLibre, data: FeatureCollection, pointed: string | null): void {
  const source = map.getSource<GeoJSONSource>(SOURCE);
  const here = (yes: number, no: number): ExpressionSpecification => [
    "case",
    ["==", ["get", "id"], pointed ?? ""],
    yes,
    no,
  ];
  const colour = isDark() ? "#6fb7cf" : "#0b5c75";
  if (source) source.setData(data);
  else {
    map.addSource(SOURCE, { type: "geojson", data });
    map.addLayer({ id: "extent-fill", type: "fill", source: SOURCE, filter: ["==", ["geometry-type"], "Polygon"] });
    map.addLayer({ id: "extent-line", type: "line", source: SOURCE, filter: ["==", ["geometry-type"], "Polygon"] });
    map.addLayer({ id: "extent-dot", type: "circle", source: SOURCE, filter: ["==", ["geometry-type"], "Point"] });
  }
  const paints = [
    ["extent-fill", "fill-color", colour],
    ["extent-fill", "fill-opacity", here(0.35, 0.12)],
    ["extent-line", "line-color", colour],
    ["extent-line", "line-width", here(3, 1.2)],
    ["extent-dot", "circle-color", colour],
    ["extent-dot", "circle-radius", here(7, 4)],
    ["extent-dot", "circle-stroke-color", "#ffffff"],
    ["extent-dot", "circle-stroke-width", 1.5],
  ] as const;
  for (const [layer, name, value] of paints) map.setPaintProperty(layer, name, value);
}
