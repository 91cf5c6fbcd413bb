/** What the screen of an asset reads, and how it stays right. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { api, ok } from "@/api/client";
import type { AssetDetails, AssetView, StylesView } from "@/api/schema";
import { useLive } from "@/live";
import { useMay } from "@/shell/session";

export const assetKey = (id: string) => ["asset", id] as const;
export const stylesKey = (id: string) => ["styles", id] as const;

const PROCESSING_SECONDS = 5;
const UNDER_WAY = ["pending", "queued", "processing"];

export function useAsset(id: string) {
  const may = useMay();
  const client = useQueryClient();
  const query = useQuery({
    queryKey: assetKey(id),
    queryFn: ({ signal }) => ok(api.GET("/api/assets/{asset_id}", { params: { path: { asset_id: id } }, signal })),
    refetchInterval: (current) =>
      current.state.data && UNDER_WAY.includes(current.state.data.processing_status)
        ? PROCESSING_SECONDS * 1000
        : false,
  });
  useLive(may("GET /api/v1/jobs") ? "jobs" : null, {
    refresh: [assetKey(id)],
    patch: (_, events) => {
      const concerned = events.some((event) => (event.data as { asset_id?: string } | null)?.asset_id === id);
      if (concerned) void client.invalidateQueries({ queryKey: assetKey(id) });
    },
  });
  return query;
}

export function useStyles(id: string) {
  return useQuery({
    queryKey: stylesKey(id),
    queryFn: async ({ signal }) => {
      const answer = await ok(api.GET("/api/assets/{asset_id}/styles", { params: { path: { asset_id: id } }, signal }));
      return answer as StylesView; // openapi-fetch turns pairs of numbers into lists
    },
  });
}

/** The name of an asset for people: its title, or its name in the catalogue. */
export function nameOf(asset: AssetView): string {
  return asset.title ?? asset.stac_item_id;
}

/** The outputs that are served: those of the newest revision that completed. Null if none is served. */
export function servedRevision(asset: AssetDetails): number | null {
  return asset.deleted_at ? null : asset.served_revision;
}
