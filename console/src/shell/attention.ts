/** The numbers in the bar: what waits for review, and what operators should look at. */

import { useQuery } from "@tanstack/react-query";
import { api, ok } from "@/api/client";
import { applySnapshot, useLive } from "@/live";
import { useMay } from "./session";

export const REVIEWS_KEY = ["reviews"] as const;
export const HEALTH_KEY = ["health"] as const;

/** An asset that waits for review, as the topic `reviews` tells it. */
export interface WaitingAsset {
  asset_id: string;
  platform_id: string;
  platform_refs: Record<string, unknown>;
  data_type: string;
  stac_item_id: string;
  title: string | null;
  revision: number;
  public_revision: number | null;
  proposed_clearance: string | null;
  workflow_id: string | null;
  processing_completed_at: string | null;
  warnings: string[];
  created_at: string;
}

/** The state of the platform, read every ten seconds. */
export function useHealth() {
  const may = useMay();
  return useQuery({
    queryKey: HEALTH_KEY,
    queryFn: () => ok(api.GET("/health")),
    enabled: may("GET /health"),
    refetchInterval: 10_000,
  });
}

/** The assets that wait for review, live; empty for those who may not review. */
export function useReviews(): WaitingAsset[] {
  const may = useMay();
  const reviewer = may("GET /api/assets/review/stream");
  const reviews = useQuery<WaitingAsset[]>({ queryKey: REVIEWS_KEY, queryFn: () => [], enabled: false });
  useLive(reviewer ? "reviews" : null, {
    patch: (client, events) =>
      client.setQueryData<WaitingAsset[]>(REVIEWS_KEY, (rows) => applySnapshot(rows, events, (row) => row.asset_id)),
  });
  return reviews.data ?? [];
}

/** How many things wait, by the name of the place. */
export function useAttention(): Record<string, number> {
  const health = useHealth();
  const dead = (health.data?.dead_letters ?? []).reduce((sum, entry) => sum + entry.letters, 0);
  return { Review: useReviews().length, Operations: dead };
}
