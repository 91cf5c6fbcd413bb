import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, ok } from "@/api/client";
import type { AssetView } from "@/api/schema";
import { ButtonLink } from "@/components/Button";
import { Card } from "@/components/Card";
import { Empty } from "@/components/Empty";
import { Icon } from "@/components/Icon";
import { Loaded } from "@/components/Loading";
import { Glyph, stateWord } from "@/components/states";
import { moment } from "@/format/time";
import { useMay } from "@/shell/session";

const MOST = 6;

export function Published() {
  const may = useMay();
  const assets = useQuery({
    queryKey: ["assets", "published"],
    queryFn: () => ok(api.GET("/api/assets", { params: { query: { approval_state: "approved", limit: MOST } } })),
    refetchInterval: 30_000,
  });
  return (
    <Card className="c7" title="Published lately" aside={<Link href="/assets">All assets</Link>} flush>
      <Loaded query={assets} lines={4}>
        {(page) =>
          page.assets.length === 0 ? (
            <Empty
              icon="upload"
              title="Nothing is published yet"
              action={may("POST /api/platform/submit") && <ButtonLink href="/submit">Submit a file</ButtonLink>}
            >
              Approved data is here, with a picture of it.
            </Empty>
          ) : (
            <ul className="tiles">
              {page.assets.map((asset) => (
                <Tile key={asset.asset_id} asset={asset} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

function Tile({ asset }: { asset: AssetView }) {
  const [shown, setShown] = useState(asset.data_type === "raster");
  return (
    <li>
      <Link className="tile" href={`/assets/${asset.asset_id}`}>
        <span className="thumb">
          {shown ? (
            <img
              src={`/raster/assets/${asset.asset_id}/preview.png?max_size=256`}
              alt=""
              loading="lazy"
              onError={() => setShown(false)}
            />
          ) : (
            <Icon name="layers" />
          )}
        </span>
        <span className="name">{asset.stac_item_id}</span>
        <span className="small dim line">
          <Glyph state={asset.clearance_state} title={stateWord(asset.clearance_state)} />r{asset.revision} ·{" "}
          {moment(asset.updated_at)}
        </span>
      </Link>
    </li>
  );
}
