import { useQuery } from "@tanstack/react-query";
import { api, ok } from "@/api/client";

export type AssetDetails = NonNullable<ReturnType<typeof useReviewed>["data"]>;

/** The asset as the reviewer looks at it. It is read once for each revision: what is decided on does not change while
 * somebody looks at it. */
export function useReviewed(assetId: string, revision: number) {
  return useQuery({
    queryKey: ["review", assetId, revision],
    queryFn: () => ok(api.GET("/api/assets/{asset_id}", { params: { path: { asset_id: assetId } } })),
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
}

/** The revision that everybody sees now, or null. */
export function publicRevision(asset: AssetDetails) {
  if (asset.public_revision === null || asset.public_revision === asset.revision) return null;
  return asset.revisions.find((revision) => revision.revision === asset.public_revision) ?? null;
}
