import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { Map as MapLibre } from "maplibre-gl";
import { useCallback, useEffect, useRef, useState } from "react";
import { Link, useLocation, useParams, useSearch } from "wouter";
import { Button, ButtonLink } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { ErrorNote } from "@/components/ErrorNote";
import { Icon } from "@/components/Icon";
import { Loading } from "@/components/Loading";
import { degrees } from "@/components/map/neatline";
import { Badge } from "@/components/states";
import { useLiveState } from "@/live";
import { useScale } from "@/map/Scale";
import { useAddress } from "@/shell/address";
import { REVIEWS_KEY, type WaitingAsset } from "@/shell/attention";
import { useKeys } from "@/shell/keys";
import { Screen } from "@/shell/Screen";
import { CompareMap } from "./CompareMap";
import { DecidedList } from "./Decided";
import { Decision } from "./Decision";
import { DifferenceTable, Origin, Warnings } from "./Differences";
import { DECISIONS_KEY, summary, useDecisions } from "./decisions";
import { Inbox, inOrder } from "./Inbox";
import { useReviewed } from "./queries";
import "./review.css";

/** What the stream of the bar has brought; the shell listens to it. */
function useWaiting(): WaitingAsset[] | undefined {
  return useQuery<WaitingAsset[]>({ queryKey: REVIEWS_KEY, queryFn: () => [], enabled: false }).data;
}

export default function Review() {
  const all = useWaiting();
  const live = useLiveState();
  const [platform, setPlatform] = useAddress<string>("platform", "");
  const { asset: chosen } = useParams<{ asset?: string }>();
  const [, navigate] = useLocation();
  const assets = inOrder(all ?? [], platform);
  const place = assets.findIndex((asset) => asset.asset_id === chosen);
  const open = useCallback(
    (asset: WaitingAsset | undefined, replace = false) => {
      const search = kept(location.search);
      navigate(asset ? `/review/${asset.asset_id}${search}` : `/review${search}`, { replace });
    },
    [navigate],
  );
  const first = assets[0];
  useEffect(() => {
    if (!chosen && first) open(first, true);
  }, [chosen, first, open]);
  if (all === undefined && live.status !== "off")
    return (
      <Screen title="Review" fills>
        <Loading lines={6} />
      </Screen>
    );
  if (!chosen)
    return (
      <Screen title="Review" fills>
        <Empty title="Nothing waits for review" action={<ButtonLink href="/assets">See all assets</ButtonLink>}>
          {platform
            ? `Nothing of ${platform} waits. Choose all platforms to see the rest.`
            : "New data appears here by itself, as soon as it has been processed."}
        </Empty>
        {platform && <Button onClick={() => setPlatform("")}>All platforms</Button>}
        <DecidedToday />
      </Screen>
    );
  const neighbours = {
    previous: assets[place < 0 ? -1 : place - 1],
    next: assets[place + 1],
    place,
    total: assets.length,
  };
  const platforms = [...new Set((all ?? []).map((asset) => asset.platform_id))].sort();
  return (
    <Opened
      key={chosen}
      assetId={chosen}
      waiting={assets[place] ?? all?.find((asset) => asset.asset_id === chosen)}
      neighbours={neighbours}
      onOpen={open}
      inbox={<InboxPlace {...{ assets, platforms, platform, chosen }} onPlatform={setPlatform} />}
    />
  );
}

/** Shown when nothing waits. */
function DecidedToday() {
  const decisions = useDecisions().data?.decisions ?? [];
  if (decisions.length === 0) return null;
  return (
    <section className="decided-today">
      <h2>Decided today: {summary(decisions)}</h2>
      <DecidedList decisions={decisions} />
    </section>
  );
}

/** The part of the address that stays when another asset is opened: not the view of the map. */
export function kept(search: string): string {
  const values = new URLSearchParams(search);
  for (const name of ["at", "divider"]) values.delete(name);
  const text = values.toString();
  return text ? `?${text}` : "";
}

function InboxPlace(properties: Omit<Parameters<typeof Inbox>[0], "search">) {
  const search = kept(`?${useSearch()}`);
  return <Inbox {...properties} search={search} />;
}

interface OpenedProps {
  assetId: string;
  /** The asset as it waits now; absent if it no longer does. */
  waiting: WaitingAsset | undefined;
  neighbours: { previous: WaitingAsset | undefined; next: WaitingAsset | undefined; place: number; total: number };
  onOpen: (asset: WaitingAsset | undefined) => void;
  inbox: React.ReactNode;
}

function Opened({ assetId, waiting, neighbours, onOpen, inbox }: OpenedProps) {
  // The revision that is looked at. Another one is shown when the reviewer asks for it.
  const [revision, setRevision] = useState(waiting?.revision ?? 0);
  const [refused, setRefused] = useState(false);
  const [rejecting, setRejecting] = useState(false);
  const [pointer, setPointer] = useState<[number, number] | null>(null);
  const [map, setMap] = useState<MapLibre | null>(null);
  const scale = useScale(map);
  const known = useRef(waiting !== undefined);
  known.current ||= waiting !== undefined;
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const reviewed = useReviewed(assetId, revision);
  const asset = reviewed.data;
  const latest = waiting?.revision ?? null;
  const changed = refused || (asset && known.current && latest !== asset.revision) ? { revision: latest } : null;
  const { previous, next } = neighbours;
  const onward = next ?? previous;
  const decided = () => {
    client.setQueryData<WaitingAsset[]>(REVIEWS_KEY, (rows) => rows?.filter((row) => row.asset_id !== assetId));
    void client.invalidateQueries({ queryKey: DECISIONS_KEY });
    onOpen(onward);
  };
  const look = () => {
    if (latest === null || latest === asset?.revision) return onOpen(onward);
    setRefused(false);
    setRejecting(false);
    setRevision(latest);
  };
  const inboxMenu = useRef<HTMLDivElement>(null);
  useKeys([
    { keys: "j", label: "next", run: () => next && onOpen(next) },
    { keys: "k", label: "previous", run: () => previous && onOpen(previous) },
    { keys: "w", label: "warnings", shown: true, run: nextWarning },
    { keys: "o", label: "open the asset", run: () => navigate(`/assets/${assetId}`) },
  ]);
  const pending = asset && asset.approval_state === "pending_review" && asset.processing_status === "completed";
  return (
    <Screen
      title={asset?.stac_item_id ?? "Review"}
      fills
      heading={
        <h1 className="cut" title={asset?.title ?? undefined}>
          {asset?.stac_item_id ?? waiting?.stac_item_id ?? "Review"}
        </h1>
      }
      beside={
        asset && (
          <>
            <span className="tag">r{asset.revision}</span>
            <span className="line desk">
              <Badge state={asset.approval_state} />
              <Badge state={asset.clearance_state} />
            </span>
          </>
        )
      }
      actions={<Neighbours {...neighbours} assetId={assetId} onOpen={onOpen} />}
      status={[
        ...(pointer ? [`${degrees(pointer[0], 0.0001, "EW")}, ${degrees(pointer[1], 0.0001, "NS")}`] : []),
        ...(scale ? [`zoom ${scale.zoom.toFixed(1)} · ${scale.number}`] : []),
        <span key="crs" className="desk">
          EPSG:3857
        </span>,
      ]}
    >
      <div className="review">
        <button type="button" className="button inbox-button" popoverTarget="inbox-menu">
          <Icon name="menu" />
          Waiting
        </button>
        <div id="inbox-menu" ref={inboxMenu} className="inbox-place" popover={narrow() ? "auto" : undefined}>
          {inbox}
        </div>
        {!asset ? (
          <section className="compare">
            {reviewed.error ? (
              <ErrorNote
                error={reviewed.error}
                onRetry={() => void reviewed.refetch()}
                elsewhere={{ href: "/review", text: "What waits" }}
              />
            ) : (
              <Loading lines={8} />
            )}
          </section>
        ) : (
          <CompareMap key={asset.revision} asset={asset} onPointer={(x, y) => setPointer([x, y])} onMap={setMap} />
        )}
        <aside className="decide" aria-label="Decision">
          {asset && (
            <>
              <div className="scroll">
                <Warnings asset={asset} />
                <DifferenceTable asset={asset} />
                <Origin asset={asset} />
              </div>
              {pending || changed ? (
                <Decision
                  key={asset.revision}
                  asset={asset}
                  changed={changed}
                  rejecting={rejecting}
                  onRejecting={setRejecting}
                  onChanged={() => setRefused(true)}
                  onLook={look}
                  onDecided={decided}
                />
              ) : (
                <NotWaiting assetId={assetId} state={asset.approval_state} onNext={onward && (() => onOpen(onward))} />
              )}
            </>
          )}
        </aside>
      </div>
    </Screen>
  );
}

/** Below 1180 px the inbox is a menu. */
function narrow(): boolean {
  return matchMedia("(max-width: 1180px)").matches;
}

function Neighbours({
  previous,
  next,
  place,
  total,
  assetId,
  onOpen,
}: OpenedProps["neighbours"] & Pick<OpenedProps, "assetId" | "onOpen">) {
  return (
    <>
      {place >= 0 && (
        <span className="small dim nowrap desk">
          {place + 1} of {total}, oldest first
        </span>
      )}
      <fieldset className="segments" aria-label="Neighbours">
        <button type="button" aria-label="Previous" disabled={!previous} onClick={() => onOpen(previous)}>
          <Icon name="left" />
          <kbd className="desk">K</kbd>
        </button>
        <button type="button" aria-label="Next" disabled={!next} onClick={() => onOpen(next)}>
          <kbd className="desk">J</kbd>
          <Icon name="right" />
        </button>
      </fieldset>
      <span className="desk">
        <ButtonLink href={`/assets/${assetId}`} hint="O">
          Open asset
        </ButtonLink>
      </span>
    </>
  );
}

function NotWaiting({ assetId, state, onNext }: { assetId: string; state: string; onNext: (() => void) | undefined }) {
  return (
    <div className="act">
      <p>
        This asset does not wait for review: it is {state.replaceAll("_", " ")}.{" "}
        <Link href={`/assets/${assetId}`}>Open the asset</Link>
      </p>
      {onNext && <Button onClick={onNext}>Look at the next one</Button>}
    </div>
  );
}

/** Leads to the warning after the one that has the focus. */
function nextWarning(): void {
  const warnings = [...document.querySelectorAll<HTMLElement>("[data-warning]")];
  const at = warnings.indexOf(document.activeElement as HTMLElement);
  const warning = warnings[(at + 1) % Math.max(1, warnings.length)];
  warning?.focus();
  warning?.scrollIntoView({ block: "nearest" });
}
