/** The picture of an asset as its default style draws it. */

import { useQuery } from "@tanstack/react-query";
import { api, ok } from "@/api/client";
import type { StylesView } from "@/api/schema";
import type { Bounds } from "@/components/map/MapFrame";
import type { Picture } from "./layers";
import { boundsOf, collectionsOf } from "./outputs";
import { defaultStyle, type Style } from "./style";
import { useTilePlace } from "./tilejson";

export interface DrawnRevision {
  asset_id: string;
  data_type: string;
  revision: number;
  table_name?: string | null;
  outputs?: unknown;
}

export function useStyles(assetId: string) {
  return useQuery({
    queryKey: ["assets", assetId, "styles"],
    queryFn: () => ok(api.GET("/api/assets/{asset_id}/styles", { params: { path: { asset_id: assetId } } })),
    select: (styles) => styles as StylesView, // openapi-fetch knows no pairs
    staleTime: 60_000,
  });
}

/** The names under which the tiles of a revision are served. */
export function namesOf(drawn: DrawnRevision): string[] {
  return drawn.data_type === "vector"
    ? collectionsOf(drawn.asset_id, drawn.table_name ?? null, drawn.outputs)
    : [drawn.asset_id];
}

/** A picture of the revision, once style and place are known. The extent is known before them. */
export function useRevisionPicture(drawn: DrawnRevision): {
  pictures: Picture[];
  bounds: Bounds | undefined;
  style: Style | null;
  error: unknown;
} {
  const vector = drawn.data_type === "vector";
  const styles = useStyles(drawn.asset_id);
  const names = namesOf(drawn);
  const { place, error } = useTilePlace(vector ? "vector" : "raster", names, drawn.revision);
  const style = defaultStyle(styles.data);
  const bounds = boundsOf((drawn.outputs as { bbox?: unknown } | null)?.bbox) ?? place?.bounds;
  const ready = place !== null && (styles.data !== undefined || styles.error !== null);
  return {
    pictures: ready ? [pictureOf(drawn, names, style, { bounds, maxzoom: place.maxzoom })] : [],
    bounds,
    style,
    error,
  };
}

export function pictureOf(
  drawn: DrawnRevision,
  names: readonly string[],
  style: Style | null,
  where: { bounds?: Bounds; maxzoom?: number },
): Picture {
  const common = { key: `revision-${drawn.revision}`, ...where };
  return drawn.data_type === "vector"
    ? { kind: "vector", names, style: style?.kind === "vector" ? style : null, ...common }
    : { kind: "raster", name: drawn.asset_id, style: style?.kind === "raster" ? style : null, ...common };
}
