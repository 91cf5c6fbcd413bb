/** What is inside a file: facts, columns or bands, and where it lies. */

import type { Map as MapLibre } from "maplibre-gl";
import { useCallback } from "react";
import { Card } from "@/components/Card";
import { mapColour } from "@/components/map/base";
import { type Bounds, MapFrame } from "@/components/map/MapFrame";
import { count } from "@/format/number";
import { boundsOf } from "@/map/outputs";
import type { FileContent, LayerContent } from "./queries";

export function ContentFacts({ inspection, layer }: { inspection: FileContent; layer: LayerContent | undefined }) {
  const facts = inspection.raster ? rasterFacts(inspection) : vectorFacts(inspection, layer);
  return (
    <dl className="content-facts card">
      {facts.map(([name, value, bad]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className={bad ? "bad-ink" : undefined}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

type Fact = readonly [name: string, value: string, bad?: boolean];

function crsText(inspection: FileContent): string {
  const { crs } = inspection;
  if (!crs) return "unknown";
  const from = crs.known_from === "option" ? " (chosen)" : "";
  return `${crs.code ?? crs.name}${from}`;
}

function vectorFacts(inspection: FileContent, layer: LayerContent | undefined): Fact[] {
  const { encoding } = inspection;
  const encodingText = encoding ? `${encoding.name.toUpperCase()} (${encoding.known_from})` : "–";
  return [
    ["Features", layer?.rows === null || !layer ? "not counted" : count(layer.rows)],
    ["Geometry", layer?.geometry_type ?? "unknown"],
    ["CRS", crsText(inspection), !inspection.crs],
    ["Encoding", encodingText],
    ["Columns", count(layer?.columns?.length ?? 0)],
  ];
}

function rasterFacts(inspection: FileContent): Fact[] {
  const { raster } = inspection;
  if (!raster) return [];
  const [width, height] = raster.pixel_size ?? [null, null];
  return [
    ["Size", `${count(raster.width)} × ${count(raster.height)}`],
    ["Bands", `${raster.bands.length}, ${raster.bands[0]?.type ?? ""}`],
    ["CRS", crsText(inspection), !inspection.crs],
    ["Pixel", width && height ? `${Number(width.toPrecision(4))} × ${Number(height.toPrecision(4))}` : "unknown"],
    ["Type", raster.raster_type?.replaceAll("_", " ") ?? "unknown"],
  ];
}

const BOX = "inspected";

/** The extent on a map. A file without a CRS has no place yet. */
export function ExtentMap({ inspection, supposed }: { inspection: FileContent; supposed: string | null }) {
  const bounds = boundsOf(inspection.extent);
  const bad = supposed !== null;
  const onReady = useCallback((map: MapLibre) => bounds && drawBox(map, bounds, bad), [bounds, bad]);
  if (!bounds)
    return (
      <div className="where nowhere">
        <span className="soft">The place is known as soon as the CRS is.</span>
      </div>
    );
  return (
    <MapFrame
      key={`${bounds.join()}${bad}`}
      className="where"
      label={`Extent of ${inspection.file_name.split("/").at(-1)}`}
      bounds={bounds}
      onReady={onReady}
      legend={supposed ? `as in ${supposed}, which you chose` : undefined}
    />
  );
}

function drawBox(map: MapLibre, [west, south, east, north]: Bounds, supposed: boolean): void {
  const ring = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ];
  const color = mapColour("--accent");
  if (map.getSource(BOX)) return;
  map.addSource(BOX, {
    type: "geojson",
    data: { type: "Feature", properties: {}, geometry: { type: "Polygon", coordinates: [ring] } },
  });
  map.addLayer({ id: `${BOX}-area`, type: "fill", source: BOX, paint: { "fill-color": color, "fill-opacity": 0.1 } });
  map.addLayer({
    id: `${BOX}-edge`,
    type: "line",
    source: BOX,
    paint: { "line-color": color, "line-width": 1.5, ...(supposed ? { "line-dasharray": [4, 3] } : {}) },
  });
}

export function ContentTable({ inspection, layer }: { inspection: FileContent; layer: LayerContent | undefined }) {
  if (inspection.raster) return <BandTable inspection={inspection} />;
  if (!layer?.columns?.length) return null;
  return (
    <Card title="Columns" aside={inspection.complete ? undefined : "of the beginning of the file"} flush>
      <div className="scrolls">
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Type</th>
              <th>Remark</th>
            </tr>
          </thead>
          <tbody>
            {layer.columns.map((column) => (
              <tr key={column.source}>
                <td className="mono">{column.source}</td>
                <td className="soft">{column.type}</td>
                <td className="warn-ink">
                  {column.name !== column.source && (
                    <>
                      becomes <code>{column.name}</code>
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function BandTable({ inspection }: { inspection: FileContent }) {
  const bands = inspection.raster?.bands ?? [];
  return (
    <Card title="Bands" aside="values of a sample" flush>
      <div className="scrolls">
        <table>
          <thead>
            <tr>
              <th>Band</th>
              <th>Type</th>
              <th className="num">Minimum</th>
              <th className="num">Maximum</th>
              <th className="num">No data</th>
              <th>Unit</th>
            </tr>
          </thead>
          <tbody>
            {bands.map((band, place) => (
              <tr key={place}>
                <td>{band.name ?? `${place + 1}, ${band.color}`}</td>
                <td className="soft">{band.type}</td>
                <td className="num">{valueText(band.minimum)}</td>
                <td className="num">{valueText(band.maximum)}</td>
                <td className="num">{band.nodata ?? "–"}</td>
                <td className="soft">{band.units ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function valueText(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : String(Number(value.toPrecision(6)));
}
