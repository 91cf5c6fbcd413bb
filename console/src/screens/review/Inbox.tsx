/** What waits for review, the longest waiting first. */

import { Link } from "wouter";
import { Count } from "@/components/Card";
import { Icon } from "@/components/Icon";
import { Age } from "@/components/Time";
import { plural } from "@/format/number";
import { useAddress } from "@/shell/address";
import type { WaitingAsset } from "@/shell/attention";
import { DecidedList } from "./Decided";
import { summary, useDecisions } from "./decisions";

/** The assets of a platform in the order of the inbox. An empty platform means all of them. */
export function inOrder(assets: readonly WaitingAsset[], platform: string): WaitingAsset[] {
  const since = (asset: WaitingAsset) => asset.processing_completed_at ?? asset.created_at;
  return assets
    .filter((asset) => platform === "" || asset.platform_id === platform)
    .sort((one, other) => since(one).localeCompare(since(other)) || one.asset_id.localeCompare(other.asset_id));
}

interface InboxProps {
  assets: readonly WaitingAsset[];
  platforms: readonly string[];
  platform: string;
  onPlatform: (platform: string) => void;
  chosen: string | null;
  search: string;
}

export function Inbox(properties: InboxProps) {
  const [list, setList] = useAddress<"" | "decided">("list", "");
  const decided = useDecisions().data;
  const decisions = decided?.decisions.filter(
    (entry) => properties.platform === "" || entry.platform_id === properties.platform,
  );
  const words = summary(decisions ?? [], decided?.next_cursor != null);
  const showing = list === "decided";
  return (
    <nav className="inbox" aria-label={showing ? "Decided today" : "Waiting for review"}>
      <header>
        <h2>{showing ? "Decided today" : "Waiting"}</h2>
        <Count value={showing ? (decisions?.length ?? 0) : properties.assets.length} hot={!showing} />
        <span className="grow" />
        {properties.platforms.length > 1 && (
          <select
            className="input small"
            aria-label="Platform"
            value={properties.platform}
            onChange={(event) => properties.onPlatform(event.target.value)}
          >
            <option value="">All platforms</option>
            {properties.platforms.map((platform) => (
              <option key={platform}>{platform}</option>
            ))}
          </select>
        )}
      </header>
      {showing ? (
        <DecidedList decisions={decisions ?? []} />
      ) : (
        <ol>
          {properties.assets.map((asset) => (
            <li key={asset.asset_id} aria-current={asset.asset_id === properties.chosen || undefined}>
              <Link href={`/review/${asset.asset_id}${properties.search}`}>
                <Row asset={asset} />
              </Link>
            </li>
          ))}
        </ol>
      )}
      <footer className="small">
        <span className="soft">{words ? `Decided today: ${words}.` : "Nothing was decided today."}</span>
        {(words || showing) && (
          <button type="button" className="link accent" onClick={() => setList(showing ? "" : "decided")}>
            {showing ? "Show what waits" : "Show decided"}
          </button>
        )}
      </footer>
    </nav>
  );
}

function Row({ asset }: { asset: WaitingAsset }) {
  return (
    <>
      <span className="line">
        <span className="strong cut grow">{asset.stac_item_id}</span>
        <span className="dim small nowrap">
          <Age at={asset.processing_completed_at ?? asset.created_at} />
        </span>
      </span>
      <span className="line small soft dotted">
        <span>r{asset.revision}</span>
        <span>{asset.data_type}</span>
        <span>{asset.platform_id}</span>
        <span className="cut">
          {asset.public_revision ? "replaces a public one" : asset.revision > 1 ? "again" : "new"}
        </span>
      </span>
      {asset.warnings.length > 0 && (
        <span className="line small warn-ink">
          <Icon name="warning" />
          {plural(asset.warnings.length, "warning")}
        </span>
      )}
    </>
  );
}
