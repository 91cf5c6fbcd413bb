/** Sharing: a link to the map. Of an asset that is not public it is signed, and ends. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "@/api/client";
import type { AssetDetails } from "@/api/schema";
import { Segments } from "@/components/Button";
import { Loaded } from "@/components/Loading";
import { Time } from "@/components/Time";
import { Dialog } from "@/shell/Dialog";
import { CopyLine } from "./Links";

const SPANS = [
  { value: "3600", label: "1 hour" },
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days" },
  { value: "2592000", label: "30 days" },
] as const;

export function useLinks(id: string, seconds?: number) {
  return useQuery({
    queryKey: ["links", id, seconds],
    queryFn: ({ signal }) =>
      ok(
        api.GET("/api/assets/{asset_id}/links", {
          params: { path: { asset_id: id }, query: seconds ? { seconds } : {} },
          signal,
        }),
      ),
    staleTime: 60_000,
  });
}

export function Share({ asset, onClose }: { asset: AssetDetails; onClose: () => void }) {
  const [seconds, setSeconds] = useState<(typeof SPANS)[number]["value"]>("604800");
  const links = useLinks(asset.asset_id, Number(seconds));
  const open = asset.public_revision !== null && asset.public_revision === asset.served_revision;
  return (
    <Dialog title="Share" onClose={onClose}>
      {!open && (
        <>
          <p>
            The asset is not public. This link shows it to everybody who has the link, until it ends or the asset is
            revoked or unpublished.
          </p>
          <Segments label="How long" options={SPANS} value={seconds} onChange={setSeconds} />
        </>
      )}
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
    </Dialog>
  );
}
