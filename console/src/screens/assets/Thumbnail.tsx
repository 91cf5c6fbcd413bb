import { useState } from "react";
import type { AssetView } from "@/api/schema";
import { Icon } from "@/components/Icon";
import { boundsOf } from "@/map/outputs";

const SMALL: Size = { width: 64, height: 42 };
/** Pictures for screens with twice the pixels. */
const SHARP = 2;

interface Size {
  width: number;
  height: number;
}

/** The address of a small picture, or null if nothing is served. */
export function thumbnailPath(asset: AssetView, { width, height }: Size = SMALL): string | null {
  if (asset.served_revision === null || asset.deleted_at) return null;
  if (asset.data_type === "raster") return `/raster/assets/${asset.asset_id}/preview.png?max_size=${width * SHARP}`;
  const box = boundsOf(asset.bbox);
  if (!box) return null;
  const query = new URLSearchParams({
    SERVICE: "WMS",
    VERSION: "1.3.0",
    REQUEST: "GetMap",
    LAYERS: asset.asset_id,
    STYLES: "",
    CRS: "CRS:84",
    BBOX: framed(box, width / height).join(","),
    WIDTH: String(width * SHARP),
    HEIGHT: String(height * SHARP),
    FORMAT: "image/png",
    TRANSPARENT: "TRUE",
  });
  return `/wms/${asset.asset_id}?${query}`;
}

/** An extent, made wider or higher to fit a frame. A point gets some room around it. */
export function framed([west, south, east, north]: [number, number, number, number], shape: number): number[] {
  const least = 0.001;
  const width = Math.max(least, east - west, (north - south) * shape);
  const height = Math.max(least, width / shape);
  const [x, y] = [(west + east) / 2, (south + north) / 2];
  return [x - width / 2, y - height / 2, x + width / 2, y + height / 2];
}

export function Thumbnail({ asset }: { asset: AssetView }) {
  const [failed, setFailed] = useState(false);
  const path = thumbnailPath(asset);
  if (!path || failed)
    return (
      <span className="thumbnail none">
        <Icon name="layers" />
      </span>
    );
  return (
    <img
      className="thumbnail"
      src={path}
      alt=""
      loading="lazy"
      decoding="async"
      width={SMALL.width}
      height={SMALL.height}
      onError={() => setFailed(true)}
    />
  );
}
