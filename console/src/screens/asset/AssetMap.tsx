import { useQuery } from "@tanstack/react-query";
import { asProblem } from "@/api/problem";
import type { AssetDetails, RasterStyle, VectorStyle } from "@/api/schema";
import { readService } from "@/api/services";
import { ErrorNote } from "@/components/ErrorNote";
import { type Bounds, MapFrame } from "@/components/map/MapFrame";
import { useMapAddress } from "@/map/address";
import { RasterLegend, VectorLegend } from "@/map/Legend";
import type { Band } from "@/map/outputs";
import { type Place, Probe } from "@/map/Probe";
import { Scale } from "@/map/Scale";
import { valueText } from "@/map/stretch";
import { nameOf } from "./data";
import type { Draft } from "./draft";
import type { MapState } from "./mapState";

interface AssetMapProps {
  asset: AssetDetails;
  state: MapState;
  draft: Draft;
  bands: readonly Band[];
  bounds: Bounds | undefined;
}

export function AssetMap({ asset, state, draft, bands, bounds }: AssetMapProps) {
  const address = useMapAddress();
  const vector = asset.data_type === "vector";
  return (
    <MapFrame
      label={`Map of ${nameOf(asset)}`}
      bounds={bounds}
      {...address}
      onReady={state.onReady}
      onClick={state.onClick}
      onPointer={state.onPointer}
      legend={
        vector ? (
          <VectorLegend style={draft.style as VectorStyle | null} title={nameOf(asset)} />
        ) : (
          <RasterLegend style={draft.style as RasterStyle | null} bands={bands} computed={draft.computed.legend} />
        )
      }
    >
      <Scale map={state.map} />
      {state.tilesError ? (
        <div className="float map-problem">
          <ErrorNote error={state.tilesError} onRetry={state.retryTiles} />
        </div>
      ) : null}
      {state.place && (
        <Probe map={state.map} at={state.place} onClose={state.close}>
          {vector ? <Properties state={state} /> : <Values asset={asset} at={state.place} bands={bands} />}
        </Probe>
      )}
    </MapFrame>
  );
}

interface PointAnswer {
  values: (number | null)[];
  band_names?: string[];
  band_descriptions?: string[];
}

function Values({ asset, at, bands }: { asset: AssetDetails; at: Place; bands: readonly Band[] }) {
  const path = `/raster/assets/${asset.asset_id}/point/${at.longitude},${at.latitude}`;
  const answer = useQuery({
    queryKey: ["point", path, asset.served_revision],
    queryFn: ({ signal }) => readService<PointAnswer>(path, signal),
    staleTime: 60_000,
  });
  if (answer.error) {
    const outside = asProblem(answer.error).code === "outside";
    return <span className="dim">{outside ? "No data here" : asProblem(answer.error).detail}</span>;
  }
  if (!answer.data) return <span className="dim">…</span>;
  return (
    <div className="values">
      {answer.data.values.map((value, place) => (
        <Pair
          key={place}
          first={place === 0}
          value={
            value === null ? "no data" : `${valueText(value)}${bands[place]?.unit ? ` ${bands[place]?.unit}` : ""}`
          }
          name={bands[place]?.name ?? `band ${place + 1}`}
        />
      ))}
    </div>
  );
}

function Pair({ value, name, first }: { value: string; name: string; first?: boolean }) {
  return (
    <>
      <span className={first ? "first" : undefined}>{value}</span>
      <span className="dim num">{name}</span>
    </>
  );
}

function Properties({ state }: { state: MapState }) {
  const entries = Object.entries(state.feature?.properties ?? {});
  if (entries.length === 0) return <span className="dim">…</span>;
  return (
    <div className="values">
      {entries.map(([name, value], place) => (
        <Pair key={name} name={name} value={cellText(value)} first={place === 0} />
      ))}
    </div>
  );
}

export function cellText(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : valueText(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
