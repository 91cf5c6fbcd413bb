import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, ok } from "@/api/client";
import { ButtonLink } from "@/components/Button";
import { Card } from "@/components/Card";
import { Empty } from "@/components/Empty";
import { Icon } from "@/components/Icon";
import { Loaded } from "@/components/Loading";
import { Glyph, stateWord } from "@/components/states";
import { Time } from "@/components/Time";
import { useMay } from "@/shell/session";
import { thumbnailPath } from "../assets/Thumbnail";
import { type Publication, publications } from "./publications";

const READ = 60;
const MOST = 6;
const SIZE = { width: 128, height: 72 };

/** The assets that reviewers approved last, also those of which a newer revision waits. */
export function Published() {
  const may = useMay();
  const decisions = useQuery({
    queryKey: ["decisions", "published"],
    queryFn: ({ signal }) => ok(api.GET("/api/assets/decisions", { params: { query: { limit: READ } }, signal })),
    enabled: may("GET /api/assets/decisions"),
    refetchInterval: 30_000,
  });
  return (
    <Card className="c7" title="Published lately" aside={<Link href="/assets">All assets</Link>} flush>
      <Loaded query={decisions} lines={4}>
        {(page) => {
          const published = publications(page.decisions).slice(0, MOST);
          return published.length === 0 ? (
            <Empty
              icon="upload"
              title="Nothing is published yet"
              action={may("POST /api/platform/submit") && <ButtonLink href="/submit">Submit a file</ButtonLink>}
            >
              Approved data is here, with a picture of it.
            </Empty>
          ) : (
            <ul className="tiles">
              {published.map((publication) => (
                <Tile key={publication.asset_id} publication={publication} />
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Card>
  );
}

function Tile({ publication }: { publication: Publication }) {
  const { asset_id: id, clearance_state: clearance } = publication;
  return (
    <li>
      <Link className="tile" href={`/assets/${id}`} title={publication.title ?? publication.stac_item_id}>
        <span className="thumb">
          <Picture assetId={id} />
        </span>
        <span className="name">{publication.stac_item_id}</span>
        <span className="small dim line">
          {clearance && <Glyph state={clearance} title={stateWord(clearance)} />}r{publication.revision} ·{" "}
          <Time at={publication.at} />
        </span>
      </Link>
    </li>
  );
}

function Picture({ assetId }: { assetId: string }) {
  const [failed, setFailed] = useState(false);
  const asset = useQuery({
    queryKey: ["asset", assetId],
    queryFn: ({ signal }) => ok(api.GET("/api/assets/{asset_id}", { params: { path: { asset_id: assetId } }, signal })),
    staleTime: 300_000,
    retry: false,
  });
  const path = asset.data && thumbnailPath(asset.data, SIZE);
  if (!path || failed) return <Icon name="layers" />;
  return <img src={path} alt="" loading="lazy" onError={() => setFailed(true)} />;
}
