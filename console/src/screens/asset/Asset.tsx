/** An asset: its map with the style beside it, and its history, links and data below. */

import { useMemo } from "react";
import { useParams } from "wouter";
import type { AssetDetails } from "@/api/schema";
import { ButtonLink } from "@/components/Button";
import { Count } from "@/components/Card";
import { Empty } from "@/components/Empty";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { Badge } from "@/components/states";
import { Tabs } from "@/components/Tabs";
import { bandsOf, boundsOf, collectionsOf, factsOf, filesOf } from "@/map/outputs";
import { placeText } from "@/map/Probe";
import { useScale } from "@/map/Scale";
import { useAddress } from "@/shell/address";
import { useKeys } from "@/shell/keys";
import { Screen } from "@/shell/Screen";
import { AssetActions } from "./Actions";
import { AssetMap } from "./AssetMap";
import { Attributes } from "./Attributes";
import { Audit } from "./Audit";
import { nameOf, servedRevision, useAsset, useStyles } from "./data";
import { outsideFailed } from "./decisions";
import { useDraft } from "./draft";
import { Files } from "./Files";
import { Links } from "./Links";
import { useMapState } from "./mapState";
import { Requests } from "./Requests";
import { Revisions } from "./Revisions";
import { Statistics } from "./Statistics";
import { StylePanel } from "./StylePanel";
import "./asset.css";

export default function AssetScreen() {
  const { id = "" } = useParams<{ id: string }>();
  const asset = useAsset(id);
  if (asset.data) return <Shown key={id} asset={asset.data} />;
  return (
    <Screen title="Asset">
      {asset.error ? (
        <ErrorNote
          error={asset.error}
          onRetry={() => void asset.refetch()}
          elsewhere={{ href: "/assets", text: "All assets" }}
        />
      ) : (
        <Loading lines={6} />
      )}
    </Screen>
  );
}

function Shown({ asset }: { asset: AssetDetails }) {
  const styles = useStyles(asset.asset_id);
  const served = servedRevision(asset);
  const facts = useMemo(() => factsOf(asset.outputs), [asset.outputs]);
  const bands = useMemo(() => bandsOf(asset.outputs), [asset.outputs]);
  const names = useMemo(
    () => collectionsOf(asset.asset_id, asset.table_name, asset.outputs),
    [asset.asset_id, asset.table_name, asset.outputs],
  );
  const draft = useDraft(asset, styles.data, bands);
  const mapState = useMapState(asset, names, draft.style, served);
  const scale = useScale(mapState.map);
  const [tab, setTab] = useAddress<string>(
    "tab",
    asset.data_type === "vector" && served !== null ? "attributes" : "revisions",
  );
  useKeys([
    { keys: "l", label: "links", shown: true, run: () => setTab("links") },
    { keys: "v", label: "revisions", shown: true, run: () => setTab("revisions") },
    ...(mapState.place ? [{ keys: "Escape", label: "close the value", run: mapState.close }] : []),
  ]);
  const files = filesOf(asset.outputs);
  return (
    <Screen
      title={nameOf(asset)}
      fills
      heading={<Heading asset={asset} />}
      actions={<AssetActions asset={asset} map={mapState.map} names={names} />}
      status={[
        mapState.pointer ? placeText(mapState.pointer) : null,
        scale ? `zoom ${scale.zoom.toFixed(1)} · ${scale.number}` : null,
        facts.crs ? `EPSG:3857 · data in ${facts.crs}` : null,
      ].filter((fact) => fact !== null)}
    >
      <div className={served === null ? "asset-screen unserved" : "asset-screen"}>
        {served === null ? (
          <Unserved asset={asset} />
        ) : (
          <AssetMap asset={asset} state={mapState} draft={draft} bands={bands} bounds={boundsOf(asset.bbox)} />
        )}
        {served !== null && !facts.series && (
          <StylePanel asset={asset} draft={draft} bands={bands} styles={styles} names={names} />
        )}
        <section className="below" aria-label="About the asset">
          <Tabs
            label="About the asset"
            current={tab}
            onChange={setTab}
            tabs={[
              ...(asset.data_type === "vector" && served !== null
                ? [
                    {
                      name: "attributes",
                      label: <>Attributes {facts.rows !== null && <Count value={facts.rows} />}</>,
                      content: () => <Attributes asset={asset} names={names} state={mapState} />,
                    },
                  ]
                : []),
              {
                name: "revisions",
                label: (
                  <>
                    Revisions <Count value={asset.revision} />
                  </>
                ),
                content: () => <Revisions asset={asset} />,
              },
              { name: "links", label: "Links", content: () => <Links asset={asset} /> },
              {
                name: "audit",
                label: (
                  <>
                    Audit <Count value={asset.audit.length} />
                  </>
                ),
                content: () => <Audit asset={asset} />,
              },
              { name: "statistics", label: "Statistics", content: () => <Statistics asset={asset} bands={bands} /> },
              {
                name: "files",
                label: (
                  <>
                    Files <Count value={files.length} />
                  </>
                ),
                content: () => <Files asset={asset} files={files} />,
              },
              {
                name: "requests",
                label: (
                  <>
                    Requests and jobs <Count value={asset.requests.length + asset.jobs.length} />
                  </>
                ),
                content: () => <Requests asset={asset} />,
              },
            ]}
          />
        </section>
      </div>
    </Screen>
  );
}

function Heading({ asset }: { asset: AssetDetails }) {
  return (
    <div className="line wrap">
      <span className="crumb">{asset.stac_collection_id}</span>
      <span className="crumb">/</span>
      <h1 title={asset.stac_item_id}>{nameOf(asset)}</h1>
      <span className="tag">r{asset.revision}</span>
      {asset.deleted_at ? (
        <Badge state="cancelled">unpublished</Badge>
      ) : (
        <>
          <Badge state={asset.processing_status} />
          <Badge state={asset.approval_state} />
          <Badge state={asset.clearance_state} />
          {outsideFailed(asset) && <Badge state="failed">export failed</Badge>}
          {asset.public_revision !== null && asset.public_revision !== asset.revision && (
            <Badge state="public">r{asset.public_revision} is public</Badge>
          )}
        </>
      )}
    </div>
  );
}

/** Why there is no map, and what to do. */
function Unserved({ asset }: { asset: AssetDetails }) {
  if (asset.deleted_at)
    return (
      <Empty icon="info" title="The asset is unpublished">
        Nothing of it is served. A submission with the same identifiers brings it back.
      </Empty>
    );
  if (asset.processing_status === "failed")
    return (
      <Empty
        icon="warning"
        title="The job failed, so there is no map"
        action={asset.current_job_id && <ButtonLink href={`/jobs/${asset.current_job_id}`}>See the job</ButtonLink>}
      >
        {asset.last_error}
      </Empty>
    );
  return (
    <Empty
      icon="layers"
      title="The map comes when the job has completed"
      action={asset.current_job_id && <ButtonLink href={`/jobs/${asset.current_job_id}`}>Watch the job</ButtonLink>}
    >
      The page shows it by itself.
    </Empty>
  );
}
