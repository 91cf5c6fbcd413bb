/** The bar of the scale, at the right below. */

import type { Map as MapLibre } from "maplibre-gl";
import { useEffect, useState } from "react";
import { scaleBar, scaleNumber } from "./scale";

/** `1 : 560,000` and the zoom of a map, as it moves. */
export function useScale(map: MapLibre | null): { zoom: number; latitude: number; number: string } | null {
  const [seen, setSeen] = useState<{ zoom: number; latitude: number } | null>(null);
  useEffect(() => {
    if (!map) return setSeen(null);
    const follow = () => setSeen({ zoom: map.getZoom(), latitude: map.getCenter().lat });
    follow();
    map.on("moveend", follow);
    return () => void map.off("moveend", follow);
  }, [map]);
  return seen && { ...seen, number: scaleNumber(seen.zoom, seen.latitude) };
}

export function Scale({ map }: { map: MapLibre | null }) {
  const seen = useScale(map);
  if (!seen) return null;
  const bar = scaleBar(seen.zoom, seen.latitude);
  return (
    <span className="scale" style={{ width: bar.width }}>
      {bar.text}
    </span>
  );
}
