import type { AssetDetails } from "@/api/schema";
import { Empty } from "@/components/Empty";
import { Facts } from "@/components/Facts";
import { bytes, count } from "@/format/number";
import { type Band, boundsOf, columnsOf, factsOf, sizeOf } from "@/map/outputs";
import { bars, trimmed, valueText } from "@/map/stretch";

export function Statistics({ asset, bands }: { asset: AssetDetails; bands: readonly Band[] }) {
  const facts = factsOf(asset.outputs);
  const bounds = boundsOf(asset.bbox);
  const columns = asset.data_type === "vector" ? columnsOf(asset.outputs) : [];
  if (!asset.outputs) return <Empty title="No data yet">Statistics come when the first revision has completed.</Empty>;
  return (
    <div className="statistics">
      <Facts
        facts={[
          ["Reference system", facts.crs],
          ["Size", facts.shape && `${count(facts.shape[1])} × ${count(facts.shape[0])} pixels`],
          ["Kind", facts.rasterType],
          ["Features", facts.rows === null ? null : count(facts.rows)],
          ["Extent", bounds?.map((value) => value.toFixed(4)).join(", ")],
          ["Files", sizeOf(asset.outputs) === null ? null : bytes(sizeOf(asset.outputs))],
          ["Table", asset.table_name && <code>{asset.table_name}</code>],
          ["Warnings", asset.warnings.length > 0 ? asset.warnings.join(" ") : null],
        ]}
      />
      {bands.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>Band</th>
              <th>Histogram</th>
              <th className="num">Min</th>
              <th className="num">Mean</th>
              <th className="num">Max</th>
              <th className="num desk">Deviation</th>
              <th className="num desk">Valid</th>
            </tr>
          </thead>
          <tbody>
            {bands.map((band) => (
              <tr key={band.number}>
                <td className="strong">
                  {band.name} {band.unit && <span className="dim">{band.unit}</span>}
                </td>
                <td>
                  <Spark band={band} />
                </td>
                <td className="num">{valueText(band.minimum)}</td>
                <td className="num">{valueText(band.mean)}</td>
                <td className="num">{valueText(band.maximum)}</td>
                <td className="num desk">{valueText(band.deviation)}</td>
                <td className="num desk">{band.valid === null ? "–" : `${valueText(band.valid)} %`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {columns.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>Column</th>
              <th>Type</th>
            </tr>
          </thead>
          <tbody>
            {columns.map((column) => (
              <tr key={column.name}>
                <td className="strong">{column.name}</td>
                <td>
                  <code>{column.type}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

const WIDTH = 160;
const HEIGHT = 22;
const MOST_BARS = 80;

function Spark({ band }: { band: Band }) {
  if (!band.histogram) return <span className="dim">–</span>;
  const drawn = bars(trimmed(band.histogram), MOST_BARS);
  const highest = Math.sqrt(Math.max(...drawn.map((bar) => bar.count), 1));
  const step = WIDTH / drawn.length;
  return (
    <svg className="spark" width={WIDTH} height={HEIGHT} role="img">
      <title>{`Histogram of ${band.name}`}</title>
      {drawn.map((bar, place) => {
        const height = (Math.sqrt(bar.count) / highest) * HEIGHT;
        return <rect key={bar.from} x={place * step} width={step * 0.85} y={HEIGHT - height} height={height} />;
      })}
    </svg>
  );
}
