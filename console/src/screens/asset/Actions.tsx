import type { Map as MapLibre } from "maplibre-gl";
import { useId, useState } from "react";
import type { AssetDetails } from "@/api/schema";
import { Button } from "@/components/Button";
import { Icon } from "@/components/Icon";
import { bytes } from "@/format/number";
import { factsOf, sizeOf } from "@/map/outputs";
import { useMay } from "@/shell/session";
import { useToast } from "@/shell/toasts";
import { DECISIONS, DecisionDialog } from "./DecisionDialog";
import { servedRevision } from "./data";
import { type DecisionName, decisionsOf } from "./decisions";
import { downloadExtract, needsExtract } from "./extracts";
import { dataFile, filePath } from "./Files";
import { Share } from "./Share";

interface ActionsProps {
  asset: AssetDetails;
  map: MapLibre | null;
  names: readonly string[];
}

const FORMATS = [
  ["gpkg", "GeoPackage"],
  ["parquet", "GeoParquet"],
  ["fgb", "FlatGeobuf"],
  ["shp", "Shapefile (ZIP)"],
  ["geojson", "GeoJSON"],
  ["csv", "CSV"],
] as const;

export function AssetActions({ asset, map, names }: ActionsProps) {
  const may = useMay();
  const [sharing, setSharing] = useState(false);
  const [deciding, setDeciding] = useState<DecisionName | null>(null);
  const served = servedRevision(asset) !== null;
  const decisions = decisionsOf(asset, may);
  if (!served && decisions.length === 0) return null;
  return (
    <>
      {served && <ServedActions asset={asset} map={map} names={names} onShare={() => setSharing(true)} />}
      <Menu label="More">
        {served && <Elsewhere asset={asset} />}
        {served && decisions.length > 0 && <hr />}
        {decisions.map((decision) => (
          <button key={decision} type="button" onClick={() => setDeciding(decision)}>
            <Icon name={DECISIONS[decision].danger ? "stop" : "done"} />
            {DECISIONS[decision].menu}
          </button>
        ))}
      </Menu>
      {sharing && <Share asset={asset} onClose={() => setSharing(false)} />}
      {deciding && <DecisionDialog asset={asset} decision={deciding} onClose={() => setDeciding(null)} />}
    </>
  );
}

function ServedActions({ asset, map, names, onShare }: ActionsProps & { onShare: () => void }) {
  const size = sizeOf(asset.outputs);
  return (
    <>
      <Button icon="link" onClick={onShare}>
        Share
      </Button>
      <Menu label="Download" icon="download" aside={asset.data_type === "raster" && size !== null ? bytes(size) : null}>
        {asset.data_type === "vector" ? (
          <VectorDownloads asset={asset} names={names} />
        ) : (
          <RasterDownloads asset={asset} map={map} />
        )}
      </Menu>
    </>
  );
}

/** The asset in other places. */
function Elsewhere({ asset }: { asset: AssetDetails }) {
  return (
    <>
      <a href={`/viewer/${asset.asset_id}`}>
        <Icon name="out" />
        Map alone
      </a>
      <a href={`/stac/collections/${asset.stac_collection_id}/items/${asset.stac_item_id}`}>
        <Icon name="out" />
        In the catalogue
      </a>
      <a href={`/api/assets/${asset.asset_id}`}>
        <Icon name="out" />
        As JSON
      </a>
    </>
  );
}

interface MenuProps {
  label: string;
  icon?: "download";
  aside?: string | null;
  children: React.ReactNode;
}

function Menu({ label, icon, aside, children }: MenuProps) {
  const id = useId();
  return (
    <span className="menu">
      <Button icon={icon} popoverTarget={id}>
        {label}
        {aside && <span className="dim desk">{aside}</span>}
        <Icon name="down" />
      </Button>
      <div id={id} popover="auto" className="popover action-menu">
        {children}
      </div>
    </span>
  );
}

function VectorDownloads({ asset, names }: { asset: AssetDetails; names: readonly string[] }) {
  const toast = useToast();
  const large = needsExtract(asset.outputs);
  return names.flatMap((name, place) =>
    FORMATS.map(([format, title]) => {
      const path = `/vector/collections/${name}/download?f=${format}`;
      const words = (
        <>
          <Icon name="download" />
          {title}
          {place > 0 && <span className="dim">{name.split(".").at(-1)}</span>}
        </>
      );
      return large ? (
        <button key={path} type="button" onClick={() => void downloadExtract(path, toast)}>
          {words}
        </button>
      ) : (
        <a key={path} href={path} download>
          {words}
        </a>
      );
    }),
  );
}

function RasterDownloads({ asset, map }: { asset: AssetDetails; map: MapLibre | null }) {
  const data = dataFile(asset);
  const toast = useToast();
  const clip = (place: MapLibre) => {
    const path = clipPath(asset.asset_id, place);
    if (needsExtract(asset.outputs)) void downloadExtract(path, toast);
    else location.assign(path);
  };
  return (
    <>
      {data && (
        <a href={filePath(asset, data)} download>
          <Icon name="download" />
          <span className="grow">Whole, as Cloud-optimized GeoTIFF</span>
          <span className="dim">{bytes(data.size)}</span>
        </a>
      )}
      {map && !factsOf(asset.outputs).series && (
        <button type="button" onClick={() => clip(map)}>
          <Icon name="download" />
          What the map shows, as GeoTIFF
        </button>
      )}
    </>
  );
}

function clipPath(id: string, map: MapLibre): string {
  const box = map.getBounds();
  const numbers = [box.getWest(), box.getSouth(), box.getEast(), box.getNorth()].map((value) => value.toFixed(6));
  return `/raster/assets/${id}/clip.tif?bbox=${numbers.join(",")}`;
}
