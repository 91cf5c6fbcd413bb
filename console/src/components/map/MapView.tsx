/** A map in its frame: base, ticks with degrees, controls top right, legend bottom left, modes bottom right. Screens add
 * their own sources and layers in `onReady`. */

import { Map as MapLibre, type MapMouseEvent, type RequestParameters, setWorkerUrl } from "maplibre-gl";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?worker&url";
import "maplibre-gl/dist/maplibre-gl.css";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { ErrorNote } from "@/components/ErrorNote";
import { Icon, type IconName } from "@/components/Icon";
import { useSession } from "@/shell/session";
import { isDark } from "@/shell/theme";
import { baseStyle } from "./base";
import { stepFor, type Tick, ticks } from "./neatline";

setWorkerUrl(workerUrl);

export type Bounds = [west: number, south: number, east: number, north: number];

export interface MapView {
  longitude: number;
  latitude: number;
  zoom: number;
}

export interface MapViewProps {
  /** What the map shows, for screen readers. */
  label: string;
  /** The extent that the map opens with, and that the button "Whole extent" returns to. */
  bounds?: Bounds;
  /** The view in the address, if it has one; it wins over the extent. */
  view?: MapView | null;
  onView?: (view: MapView) => void;
  /** Called when the base is there, and again after the colours have changed: add sources and layers. */
  onReady?: (map: MapLibre) => void;
  onClick?: (event: MapMouseEvent) => void;
  onPointer?: (longitude: number, latitude: number) => void;
  /** As whom tiles are asked for: as everybody, who sees what is public, or as the caller, past what the browser has
   * kept. By default as the caller. */
  asks?: "everybody" | "caller";
  controls?: ReactNode;
  legend?: ReactNode;
  modes?: ReactNode;
  children?: ReactNode;
  className?: string;
}

const WORLD: Bounds = [-170, -60, 170, 75];
const EDGE = 17;
const PADDING = 40;

export default function MapViewComponent(properties: MapViewProps) {
  const { document: session } = useSession();
  const container = useRef<HTMLDivElement>(null);
  const latest = useRef(properties);
  latest.current = properties;
  const [map, setMap] = useState<MapLibre | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const base = session.base_map;

  useEffect(() => {
    const element = container.current;
    if (!element) return;
    let created: MapLibre | null = null;
    let gone = false;
    baseStyle(base)
      .then((style) => {
        if (gone) return;
        created = create(element, style, latest);
        created.on("load", () => {
          if (created && !gone) latest.current.onReady?.(created);
        });
        setMap(created);
      })
      .catch((error: unknown) => setProblem(error));
    return () => {
      gone = true;
      created?.remove();
      setMap(null);
    };
  }, [base]);

  useColours(map, base, latest);
  return (
    <section className={`map ${properties.className ?? ""}`} aria-label={properties.label}>
      <div className="canvas" ref={container} />
      {map && <Neatline map={map} />}
      {map && (
        <div className="float controls">
          <Control icon="plus" label="Zoom in" onClick={() => map.zoomIn()} />
          <Control icon="minus" label="Zoom out" onClick={() => map.zoomOut()} />
          <Control
            icon="extent"
            label="Whole extent"
            onClick={() => map.fitBounds(properties.bounds ?? WORLD, { padding: PADDING })}
          />
          {properties.controls}
        </div>
      )}
      {properties.legend && <div className="float legend">{properties.legend}</div>}
      {properties.modes && <div className="modes">{properties.modes}</div>}
      {base?.attribution && <span className="attribution">{base.attribution}</span>}
      {properties.children}
      {problem ? <ErrorNote error={problem} /> : null}
    </section>
  );
}

export function Control({ icon, label, onClick }: { icon: IconName; label: string; onClick: () => void }) {
  return (
    <button type="button" aria-label={label} title={label} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

function create(
  element: HTMLElement,
  style: Awaited<ReturnType<typeof baseStyle>>,
  latest: { current: MapViewProps },
): MapLibre {
  const { bounds, view, asks } = latest.current;
  const camera = view
    ? { center: [view.longitude, view.latitude] as [number, number], zoom: view.zoom }
    : { bounds: bounds ?? WORLD, fitBoundsOptions: { padding: PADDING } };
  const map = new MapLibre({
    container: element,
    style,
    ...camera,
    attributionControl: false,
    dragRotate: false,
    pitchWithRotate: false,
    touchPitch: false,
    fadeDuration: 0,
    maxZoom: 22,
    canvasContextAttributes: { preserveDrawingBuffer: true },
    ...(asks ? { transformRequest: (url: string) => asked(url, asks) } : {}),
  });
  map.touchZoomRotate.disableRotation();
  map.getCanvas().setAttribute("aria-label", latest.current.label);
  map.on("moveend", (event) => {
    if ("byPage" in event) return;
    const { lng, lat } = map.getCenter();
    latest.current.onView?.({ longitude: lng, latitude: lat, zoom: map.getZoom() });
  });
  map.on("click", (event) => latest.current.onClick?.(event));
  map.on("mousemove", (event) => latest.current.onPointer?.(event.lngLat.lng, event.lngLat.lat));
  return map;
}

/** A request for our own tiles. One asset has two faces under one address, so the cache must not mix them up. */
function asked(url: string, asks: "everybody" | "caller"): RequestParameters {
  if (!url.startsWith(location.origin)) return { url };
  if (asks === "caller") return { url, cache: "no-cache" };
  // MapLibre hands it on to `fetch`, which also knows "omit".
  return { url, cache: "no-store", credentials: "omit" as "same-origin" };
}

/** Takes the colours of the base from the page again when they change. */
function useColours(
  map: MapLibre | null,
  base: Parameters<typeof baseStyle>[0],
  latest: { current: MapViewProps },
): void {
  useEffect(() => {
    if (!map) return;
    let dark = isDark();
    const changed = () => {
      if (isDark() === dark) return;
      dark = isDark();
      void baseStyle(base).then((style) => {
        map.once("style.load", () => latest.current.onReady?.(map));
        map.setStyle(style, { diff: false });
      });
    };
    const media = matchMedia("(prefers-color-scheme: dark)");
    const observer = new MutationObserver(changed);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    media.addEventListener("change", changed);
    return () => {
      observer.disconnect();
      media.removeEventListener("change", changed);
    };
  }, [map, base, latest]);
}

function Neatline({ map }: { map: MapLibre }) {
  const [frame, setFrame] = useState<{ width: number; height: number; across: Tick[]; down: Tick[] } | null>(null);
  useEffect(() => {
    const draw = () => setFrame(frameOf(map));
    draw();
    map.on("move", draw);
    map.on("resize", draw);
    return () => {
      map.off("move", draw);
      map.off("resize", draw);
    };
  }, [map]);
  if (!frame) return null;
  const { width, height } = frame;
  return (
    <svg className="neat" aria-hidden="true">
      <rect width={width} height={EDGE} />
      <rect width={EDGE} height={height} />
      {frame.across
        .filter((tick) => tick.at > EDGE + 4)
        .map((tick) => (
          <g key={tick.at}>
            <path className="tick" d={`M${tick.at} ${tick.label ? 6 : 14}V${EDGE}`} />
            {tick.label && <path className="grid" d={`M${tick.at} ${EDGE}V${height}`} />}
            {tick.label && tick.at < width - 50 && (
              <text x={tick.at + 4} y={12}>
                {tick.label}
              </text>
            )}
          </g>
        ))}
      {frame.down
        .filter((tick) => tick.at > EDGE + 4)
        .map((tick) => (
          <g key={tick.at}>
            <path className="tick" d={`M${tick.label ? 6 : 14} ${tick.at}H${EDGE}`} />
            {tick.label && <path className="grid" d={`M${EDGE} ${tick.at}H${width}`} />}
            {tick.label && tick.at > 70 && (
              <text transform={`translate(12 ${tick.at - 4}) rotate(-90)`}>{tick.label}</text>
            )}
          </g>
        ))}
      <path className="edge" d={`M${EDGE} ${height}V${EDGE}H${width}`} />
    </svg>
  );
}

function frameOf(map: MapLibre) {
  const { clientWidth: width, clientHeight: height } = map.getContainer();
  const bounds = map.getBounds();
  const [west, east, south, north] = [bounds.getWest(), bounds.getEast(), bounds.getSouth(), bounds.getNorth()];
  const step = stepFor((east - west) / Math.max(1, width));
  const middle = map.getCenter();
  return {
    width,
    height,
    across: ticks(west, east, step, "EW", (value) => map.project([value, middle.lat]).x),
    down: ticks(south, north, step, "NS", (value) => map.project([middle.lng, value]).y),
  };
}
