import { expect, it } from "vitest";
import type { AssetView } from "@/api/schema";
import { framed, thumbnailPath } from "./Thumbnail";

const asset = { asset_id: "a", data_type: "vector", served_revision: 1, deleted_at: null, bbox: [0, 0, 1, 4] };

it("frames an extent without bending it", () => {
  expect(framed([0, 0, 4, 1], 2)).toEqual([0, -0.5, 4, 1.5]);
  expect(framed([0, 0, 1, 4], 2)).toEqual([-3.5, 0, 4.5, 4]);
  expect(framed([5, 5, 5, 5], 1)).toEqual([4.9995, 4.9995, 5.0005, 5.0005]);
});

it("has no picture of what is not served", () => {
  expect(thumbnailPath(asset as AssetView)).toContain("/wms/a?");
  expect(thumbnailPath({ ...asset, data_type: "raster" } as AssetView)).toContain("/raster/assets/a/preview.png");
  for (const odd of [{ served_revision: null }, { deleted_at: "2026-01-01" }, { bbox: null }])
    expect(thumbnailPath({ ...asset, ...odd } as AssetView)).toBeNull();
});
