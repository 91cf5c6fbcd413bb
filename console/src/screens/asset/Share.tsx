/** Sharing: a link to the map. Of an asset that is not public it is signed, and ends. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "@/api/client";
import type { AssetDetails } from "@/api/schema";
import { Segments } from "@/components/Button";
import { Field } from "@/components/Field";
import { Loaded } from "@/components/Loading";
import { Time } from "@/components/Time";
import { Dialog } from "@/shell/Dialog";
import { CopyLine } from "./Links";
import { isoDay, latestDay, secondsUntilEndOf } from "./lastDay";

const SPANS = [
  { value: "3600", label: "1 hour" },
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days" },
  { value: "2592000", label: "30 days" },
  { value: "date", label: "Until a date" },
] as const;
type SpanName = (typeof SPANS)[number]["value"];

interface Lasting {
  /** Tells one span from another; the seconds of a date become fewer while somebody looks at them. */
  name: string;
  seconds: () => number | null;
}

export function useLinks(id: string, lasting?: Lasting, enabled = true) {
  return useQuery({
    queryKey: ["links", id, lasting?.name],
    queryFn: ({ signal }) => {
      const seconds = lasting?.seconds();
      const query = seconds ? { seconds } : {};
      return ok(api.GET("/api/assets/{asset_id}/links", { params: { path: { asset_id: id }, query }, signal }));
    },
    staleTime: 60_000,
    enabled,
  });
}

export function Share({ asset, onClose }: { asset: AssetDetails; onClose: () => void }) {
  const [span, setSpan] = useState<SpanName>("604800");
  const [day, setDay] = useState("");
  const [opened] = useState(() => new Date());
  const seconds = () => (span === "date" ? secondsUntilEndOf(day, new Date()) : Number(span));
  const fits = seconds() !== null;
  const links = useLinks(asset.asset_id, { name: span === "date" ? day : span, seconds }, fits);
  const open = asset.public_revision !== null && asset.public_revision === asset.served_revision;
  return (
    <Dialog title="Share" onClose={onClose}>
      {!open && (
        <>
          <p>
            The asset is not public. This link shows it to everybody who has the link, until it ends or the asset is
            revoked or unpublished.
          </p>
          <Segments label="How long" options={SPANS} value={span} onChange={setSpan} />
          {span === "date" && (
            <Field
              label="Last day"
              help={`At the latest ${isoDay(latestDay(opened))}. The link ends when that day ends here.`}
              wrong={day !== "" && !fits ? `${day} is in the past or too far away. Choose another day.` : undefined}
            >
              {(attributes) => (
                <input
                  {...attributes}
                  className="input"
                  type="date"
                  min={isoDay(opened)}
                  max={isoDay(latestDay(opened))}
                  value={day}
                  onChange={(event) => setDay(event.target.value)}
                />
              )}
            </Field>
          )}
        </>
      )}
      {fits && (
        <Loaded query={links} lines={2}>
          {(view) => (
            <>
              <div className="links share">
                <CopyLine title="Map" text={view.links.viewer ?? ""} />
                {view.links.tiles && <CopyLine title="Tiles (XYZ)" text={view.links.tiles} />}
                {view.links.features && <CopyLine title="Features" text={view.links.features} />}
              </div>
              {view.expires_at ? (
                <p className="small">
                  Ends <Time at={view.expires_at} />.
                </p>
              ) : (
                <p className="small dim">The asset is public: the links need no sign-in and have no end.</p>
              )}
            </>
          )}
        </Loaded>
      )}
    </Dialog>
  );
}
