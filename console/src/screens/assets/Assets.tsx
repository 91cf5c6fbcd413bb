/** All assets: a table with thumbnails, and where they are. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { api, ok } from "@/api/client";
import type { AssetView } from "@/api/schema";
import { Button, ButtonLink, Segments } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { State } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { Age } from "@/components/Time";
import { count } from "@/format/number";
import { useLive } from "@/live";
import { useAddress, useAddresses } from "@/shell/address";
import { Screen } from "@/shell/Screen";
import { useMay } from "@/shell/session";
import { AssetsMap } from "./AssetsMap";
import { Filters } from "./Filters";
import { isFiltered, queryOf } from "./filters";
import { Thumbnail } from "./Thumbnail";
import "./assets.css";

const PAGE = 100;
const ROW = 52;
const LAYOUTS = [
  { value: "both", label: "Table and map" },
  { value: "table", label: "Table" },
] as const;

export default function Assets() {
  const may = useMay();
  const [, navigate] = useLocation();
  const [values, setAddress] = useAddresses();
  const [layout, setLayout] = useAddress<"both" | "table">("show", "both");
  const [pointed, setPointed] = useState<string | null>(null);
  const query = queryOf(values);
  const pages = useInfiniteQuery({
    queryKey: ["assets", query],
    queryFn: ({ pageParam, signal }) => {
      const cursor = pageParam ? { cursor: pageParam } : {};
      return ok(api.GET("/api/assets", { params: { query: { ...query, limit: PAGE, ...cursor } }, signal }));
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    placeholderData: (earlier) => earlier,
  });
  useLive(may("GET /api/v1/stream") ? "jobs" : null, {
    refresh: [["assets", query]],
    patch: (client, events) => {
      const settled = events.some((event) => isSettled(event.data));
      if (settled) void client.invalidateQueries({ queryKey: ["assets"] }, { cancelRefetch: false });
    },
  });
  const assets = pages.data?.pages.flatMap((page) => page.assets) ?? [];
  const total = `${count(assets.length)}${pages.hasNextPage ? " or more" : ""}`;
  const clear = Object.fromEntries([...values.keys()].filter((name) => name !== "show").map((name) => [name, null]));
  return (
    <Screen
      title="Assets"
      fills
      beside={<Filters />}
      status={[pages.data ? `${total} assets` : null].filter((fact) => fact !== null)}
      actions={
        <>
          <span className="desk">
            <Segments label="Layout" options={LAYOUTS} value={layout} onChange={setLayout} />
          </span>
          {may("POST /api/platform/submit") && (
            <ButtonLink kind="primary" icon="upload" href="/submit">
              Submit
            </ButtonLink>
          )}
        </>
      }
    >
      <div className={`assets-screen ${layout}`}>
        {pages.isPending ? (
          <Loading lines={8} />
        ) : pages.error && assets.length === 0 ? (
          <ErrorNote error={pages.error} onRetry={() => void pages.refetch()} />
        ) : (
          <Table
            label="Assets"
            rows={assets}
            columns={columnsOf(setPointed)}
            rowKey={(asset) => asset.asset_id}
            rowHeight={ROW}
            opened={pointed}
            onOpen={(asset) => navigate(`/assets/${asset.asset_id}`)}
            onEnd={() => {
              if (pages.hasNextPage && !pages.isFetchingNextPage) void pages.fetchNextPage();
            }}
            empty={
              isFiltered(values) ? (
                <Empty
                  icon="find"
                  title="No asset matches"
                  action={<Button onClick={() => setAddress(clear)}>Clear the filters</Button>}
                >
                  Search looks into titles and identifiers, such as those of dataset and version.
                </Empty>
              ) : (
                <Empty
                  icon="layers"
                  title="No assets yet"
                  action={may("POST /api/platform/submit") && <ButtonLink href="/submit">Submit a file</ButtonLink>}
                >
                  A raster or a vector layer that is submitted becomes an asset, with a map, links and a history.
                </Empty>
              )
            }
          />
        )}
        {layout === "both" && (
          <AssetsMap
            assets={assets}
            pointed={pointed}
            onPoint={setPointed}
            onOpen={(id) => navigate(`/assets/${id}`)}
          />
        )}
      </div>
    </Screen>
  );
}

/** Whether an event is about the end of a job of an asset: its row then has another state. */
function isSettled(data: unknown): boolean {
  const job = data as { asset_id?: string | null; completed_at?: string | null } | null;
  return Boolean(job?.asset_id && job.completed_at);
}

function columnsOf(onPoint: (id: string | null) => void): Column<AssetView>[] {
  return [
    {
      name: "picture",
      head: <span className="hidden">Picture</span>,
      width: 76,
      cell: (asset) => <Thumbnail asset={asset} />,
    },
    {
      name: "name",
      head: "Asset",
      cut: true,
      cell: (asset) => (
        <span className="asset-name">
          <Link
            className="strong cut"
            href={`/assets/${asset.asset_id}`}
            onMouseEnter={() => onPoint(asset.asset_id)}
            onFocus={() => onPoint(asset.asset_id)}
            onMouseLeave={() => onPoint(null)}
          >
            {asset.title ?? asset.stac_item_id}
          </Link>
          <span className="dim small cut">
            {asset.title ? `${asset.stac_item_id} · ` : ""}
            {asset.platform_id} · {asset.data_type} · r{asset.revision}
          </span>
        </span>
      ),
    },
    {
      name: "processing",
      head: "Processing",
      width: 116,
      desk: true,
      cell: (asset) =>
        asset.deleted_at ? <State state="cancelled">unpublished</State> : <State state={asset.processing_status} />,
    },
    { name: "approval", head: "Approval", width: 130, cell: (asset) => <State state={asset.approval_state} /> },
    {
      name: "clearance",
      head: "Clearance",
      width: 136,
      desk: true,
      cell: (asset) =>
        asset.public_revision !== null && asset.public_revision !== asset.revision ? (
          <State state="public">r{asset.public_revision} is public</State>
        ) : (
          <State state={asset.clearance_state} />
        ),
    },
    {
      name: "changed",
      head: "Changed",
      width: 96,
      num: true,
      desk: true,
      cell: (asset) => <Age at={asset.updated_at} />,
    },
  ];
}
