/** The place of a map. The library is loaded when the first map is shown, and the frame keeps its size meanwhile. */

import { lazy, Suspense } from "react";
import type { MapViewProps } from "./MapView";

const MapView = lazy(() => import("./MapView"));

export type { Bounds, MapView as MapCamera, MapViewProps } from "./MapView";

export function MapFrame(properties: MapViewProps) {
  return (
    <Suspense fallback={<section className="map" aria-label={properties.label} />}>
      <MapView {...properties} />
    </Suspense>
  );
}
