/** The public revision and the new one on two maps that move together: with a divider, in turns, or side by side. */

import type { Map as MapLibre } from "maplibre-gl";
import { useCallback, useEffect, useState } from "react";
import { Segments } from "@/components/Button";
import { MapFrame } from "@/components/map/MapFrame";
import { useMapAddress } from "@/map/address";
import { RasterLegend, VectorLegend } from "@/map/Legend";
import { usePictures } from "@/map/layers";
import { bandsOf, boundsOf, unionOf } from "@/map/outputs";
import { namesOf, pictureOf, useRevisionPicture, useStyles } from "@/map/picture";
import { useAddress } from "@/shell/address";
import { useKeys } from "@/shell/keys";
import { Divider, ReviewLegend, Side } from "./CompareParts";
import { type AssetDetails, publicRevision } from "./queries";
import { drawDifferences, useSeenDifferences } from "./seen";

export type Mode = "swipe" | "flicker" | "beside";

const FLICKER_MILLISECONDS = 700;
const STEP = 2;

interface CompareMapProps {
  asset: AssetDetails;
  onPointer: (x: number, y: number) => void;
  onMap: (map: MapLibre | null) => void;
}

export function CompareMap({ asset, onPointer, onMap }: CompareMapProps) {
  const before = publicRevision(asset);
  const [mode, setMode] = useAddress<Mode>("mode", "swipe");
  const [divider, setDivider] = useAddress<string>("divider", "50");
  const [marked, setMarked] = useAddress<"on" | "off">("differences", "on");
  const [showsOld, setShowsOld] = useState(false);
  const share = Math.min(97, Math.max(3, Number(divider) || 50));
  const move = (step: number) => setDivider(String(Math.min(97, Math.max(3, share + step))));
  const vector = asset.data_type === "vector";
  useKeys(
    before
      ? [
          { keys: "ArrowLeft", label: "divider to the left", run: () => move(-STEP) },
          {
            keys: "ArrowRight",
            label: "move divider",
            sign: "ArrowLeft ArrowRight",
            shown: mode === "swipe",
            run: () => move(STEP),
          },
          { keys: "s", label: "swipe", run: () => setMode("swipe") },
          { keys: "f", label: "flicker", run: () => setMode("flicker") },
          { keys: "b", label: "side by side", run: () => setMode("beside") },
          ...(vector
            ? [{ keys: "d", label: "differences", run: () => setMarked(marked === "on" ? "off" : "on") }]
            : []),
        ]
      : [],
  );
  useEffect(() => {
    if (mode !== "flicker") return setShowsOld(false);
    const timer = setInterval(() => setShowsOld((shown) => !shown), FLICKER_MILLISECONDS);
    return () => clearInterval(timer);
  }, [mode]);

  const { view, onView } = useMapAddress();
  const now = useRevisionPicture(asset);
  const styles = useStyles(asset.asset_id);
  const old = before && { ...before, asset_id: asset.asset_id, data_type: asset.data_type };
  const oldBounds = boundsOf((old?.outputs as { bbox?: unknown } | null)?.bbox);
  const bounds = unionOf([now.bounds, oldBounds].filter((box) => box !== undefined));
  const [maps, setMaps] = useState<{ old: MapLibre | null; now: MapLibre | null }>({ old: null, now: null });
  useTogether(maps.old, maps.now);
  const seen = useSeenDifferences(maps.now, asset, before !== null && vector && marked === "on");
  const nowPictures = usePictures(now.pictures);
  const oldPictures = usePictures(
    old && now.pictures.length > 0
      ? [pictureOf(old, namesOf(old), now.style, { bounds: oldBounds, maxzoom: now.pictures[0]?.maxzoom })]
      : [],
  );
  const { onReady: drawNow } = nowPictures;
  const { onReady: drawOld } = oldPictures;
  const readyNow = useCallback(
    (map: MapLibre) => {
      drawNow(map);
      setMaps((both) => ({ ...both, now: map }));
      onMap(map);
    },
    [drawNow, onMap],
  );
  const readyOld = useCallback(
    (map: MapLibre) => {
      drawOld(map);
      setMaps((both) => ({ ...both, old: map }));
    },
    [drawOld],
  );
  useEffect(() => {
    drawDifferences(maps.now, seen.differences, "new", marked === "on");
    drawDifferences(maps.old, seen.differences, "old", marked === "on");
  }, [maps, seen.differences, marked]);

  if (!bounds) return <section className="compare" aria-label="Map" />;
  const legend = (
    <ReviewLegend
      differences={
        before && vector ? { seen, marked: marked === "on", onMark: (on) => setMarked(on ? "on" : "off") } : null
      }
    >
      {vector ? (
        <VectorLegend
          style={now.style?.kind === "vector" ? now.style : null}
          title={asset.title ?? asset.stac_item_id}
        />
      ) : (
        <RasterLegend
          style={now.style?.kind === "raster" ? now.style : null}
          bands={bandsOf(asset.outputs)}
          computed={styles.data?.styles.find((entry) => entry.name === "automatic")?.legend ?? []}
        />
      )}
    </ReviewLegend>
  );
  return (
    <section
      className={`compare ${before ? mode : "alone"} ${showsOld ? "shows-old" : ""}`}
      style={{ ["--x" as string]: `${share}%` }}
      aria-label={before ? "Map, public and new revision" : "Map of the new revision"}
    >
      {before && (
        <MapFrame
          className="old"
          label={`Public revision ${before.revision}`}
          bounds={bounds}
          view={view}
          asks="everybody"
          onReady={readyOld}
          onPointer={onPointer}
        />
      )}
      <MapFrame
        className="new"
        label={`New revision ${asset.revision}`}
        bounds={bounds}
        view={view}
        onView={onView}
        asks="caller"
        onReady={readyNow}
        onPointer={onPointer}
        legend={legend}
      />
      {before && (
        <>
          <Side side="l" state="public" text={`r${before.revision}`} words="public now" />
          <Side side="r" state="pending_review" text={`r${asset.revision}`} words="new" />
          {mode === "swipe" && (
            <Divider
              share={share}
              onMove={(value) => setDivider(String(Math.round(value)))}
              names={[before.revision, asset.revision]}
            />
          )}
          <div className="float compare-modes desk">
            <Segments<Mode>
              label="Comparison"
              value={mode}
              onChange={setMode}
              options={[
                {
                  value: "swipe",
                  label: (
                    <>
                      Swipe <kbd>S</kbd>
                    </>
                  ),
                },
                {
                  value: "flicker",
                  label: (
                    <>
                      Flicker <kbd>F</kbd>
                    </>
                  ),
                },
                {
                  value: "beside",
                  label: (
                    <>
                      Side by side <kbd>B</kbd>
                    </>
                  ),
                },
              ]}
            />
          </div>
        </>
      )}
      {now.error ? (
        <p className="float map-error small bad-ink" role="alert">
          The tiles cannot be loaded. Reload the page to try again.
        </p>
      ) : null}
    </section>
  );
}

/** Moves two maps together. */
function useTogether(one: MapLibre | null, other: MapLibre | null): void {
  useEffect(() => {
    if (!one || !other) return;
    let busy = false;
    const follow = (from: MapLibre, to: MapLibre) => () => {
      if (busy) return;
      busy = true;
      to.jumpTo({ center: from.getCenter(), zoom: from.getZoom() });
      busy = false;
    };
    const [forth, back] = [follow(one, other), follow(other, one)];
    other.on("move", back);
    one.on("move", forth);
    back();
    return () => {
      one.off("move", forth);
      other.off("move", back);
    };
  }, [one, other]);
}
