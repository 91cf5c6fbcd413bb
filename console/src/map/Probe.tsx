/** What is at a place of the map: a cross, and a box beside it that moves with the map. */

import type { Map as MapLibre } from "maplibre-gl";
import { type ReactNode, useEffect, useState } from "react";
import { Button } from "@/components/Button";

export interface Place {
  longitude: number;
  latitude: number;
}

const BESIDE = 12;
const BOX = 300;

/** Put it among the children of the `MapFrame`. */
export function Probe(properties: { map: MapLibre | null; at: Place; onClose: () => void; children: ReactNode }) {
  const { map, at } = properties;
  const point = useScreenPoint(map, at);
  if (!map || !point) return null;
  const { clientWidth, clientHeight } = map.getContainer();
  const leftOf = point.x > clientWidth - BOX;
  const above = point.y > clientHeight / 2;
  return (
    <>
      <svg className="cross" viewBox="0 0 15 15" aria-hidden="true" style={{ left: point.x, top: point.y }}>
        <path d="M7.5 0v15M0 7.5h15" />
        <path d="M7.5 0v15M0 7.5h15" />
      </svg>
      <section
        className="float probe"
        aria-label="At this place"
        aria-live="polite"
        style={{
          ...(leftOf ? { right: clientWidth - point.x + BESIDE } : { left: point.x + BESIDE }),
          ...(above ? { bottom: clientHeight - point.y + BESIDE } : { top: point.y + BESIDE }),
        }}
      >
        <Button kind="quiet" icon="close" aria-label="Close" onClick={properties.onClose} />
        {properties.children}
        <div className="dim place">{placeText(at)}</div>
      </section>
    </>
  );
}

/** `116.5214° E, 8.4418° S` */
export function placeText({ longitude, latitude }: Place): string {
  const wrapped = ((((longitude + 180) % 360) + 360) % 360) - 180;
  const east = `${Math.abs(wrapped).toFixed(4)}° ${wrapped < 0 ? "W" : "E"}`;
  return `${east}, ${Math.abs(latitude).toFixed(4)}° ${latitude < 0 ? "S" : "N"}`;
}

function useScreenPoint(map: MapLibre | null, at: Place): { x: number; y: number } | null {
  const [point, setPoint] = useState<{ x: number; y: number } | null>(null);
  const { longitude, latitude } = at;
  useEffect(() => {
    if (!map) return;
    const follow = () => setPoint(map.project([longitude, latitude]));
    follow();
    map.on("move", follow);
    map.on("resize", follow);
    return () => {
      map.off("move", follow);
      map.off("resize", follow);
    };
  }, [map, longitude, latitude]);
  return point;
}
