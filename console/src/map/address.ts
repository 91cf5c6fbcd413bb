/** The view of a map in the address: `at=116.521,-8.442,9.6`. */

import { useCallback } from "react";
import type { MapCamera } from "@/components/map/MapFrame";
import { useAddresses } from "@/shell/address";

export function viewText(view: MapCamera): string {
  const digits = Math.max(2, Math.min(7, Math.ceil(view.zoom / 3) + 1));
  return `${view.longitude.toFixed(digits)},${view.latitude.toFixed(digits)},${view.zoom.toFixed(2)}`;
}

export function viewOf(text: string | null): MapCamera | null {
  const [longitude, latitude, zoom, ...more] = (text ?? "").split(",").map(Number);
  if (more.length > 0 || ![longitude, latitude, zoom].every(Number.isFinite)) return null;
  if (Math.abs(latitude as number) > 90 || (zoom as number) < 0 || (zoom as number) > 24) return null;
  return { longitude: longitude as number, latitude: latitude as number, zoom: zoom as number };
}

/** `view` and `onView` for a `MapFrame`. */
export function useMapAddress(name = "at"): { view: MapCamera | null; onView: (view: MapCamera) => void } {
  const [values, change] = useAddresses();
  const onView = useCallback((view: MapCamera) => change({ [name]: viewText(view) }), [change, name]);
  return { view: viewOf(values.get(name)), onView };
}
