/** The place of a map. The library is loaded when the first map is shown, and the frame keeps its size meanwhile. */

import { lazy, Suspense } from "react";
import type { MapViewProps } from "./MapView";

const MapView = lazy(() => import("./MapView"));

export type { Bounds, MapView as MapCamera, MapViewProps } from "./MapView";

/** Given to a movement as its data: the page moved the map, not somebody, so it is not a view for the address. */
export const BY_PAGE = { byPage: true };

export function MapFrame(properties: MapViewProps) {
  return (
    <Suspense fallback={<section className="map" aria-label={properties.label} />}>
      <MapView {...properties} />
    </Suspense>
  );
}
