import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, ok } from "@/api/client";
import type { AssetDetails } from "@/api/schema";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Icon } from "@/components/Icon";
import { Id } from "@/components/Id";
import { State } from "@/components/states";
import { Time } from "@/components/Time";
import { bytes } from "@/format/number";
import { sizeOf } from "@/map/outputs";
import { Dialog } from "@/shell/Dialog";
import { useMay } from "@/shell/session";
import { useToast } from "@/shell/toasts";
import { assetKey } from "./data";
import { Hash } from "./Files";
import { type RevisionRow, revisionRows } from "./revisionRows";

export function Revisions({ asset }: { asset: AssetDetails }) {
  const may = useMay();
  const [back, setBack] = useState<RevisionRow | null>(null);
  const rows = revisionRows(asset);
  const mayGoBack = may("POST /api/platform/rollback") && !asset.deleted_at;
  return (
    <>
      <table>
        <thead>
          <tr>
            <th />
            <th>Submitted</th>
            <th>Processing</th>
            <th>Approval</th>
            <th className="desk">Clearance</th>
            <th className="num desk">Size</th>
            <th className="desk">SHA-256</th>
            <th className="desk">Job</th>
            <th />
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.revision} aria-selected={row.revision === asset.served_revision || undefined}>
              <td className="strong">r{row.revision}</td>
              <td>
                <Time at={row.at} />
              </td>
              <td>
                <State state={row.processing} />
              </td>
              <td>
                <State state={row.approval} />
              </td>
              <td className="desk">
                <State state={row.clearance} />
              </td>
              <td className="num desk">{bytes(sizeOf(row.outputs))}</td>
              <td className="desk">
                <Hash sha256={row.hash} />
              </td>
              <td className="desk">
                {row.job && may("GET /api/v1/jobs/{job_id}") ? (
                  <Link href={`/jobs/${row.job}`}>
                    <Id id={row.job} />
                  </Link>
                ) : (
                  row.job && <Id id={row.job} />
                )}
              </td>
              <td className="num">
                {row.note && <span className="soft">{row.note}</span>}
                {mayGoBack && row.canReturn && (
                  <Button kind="quiet" onClick={() => setBack(row)}>
                    Go back to r{row.revision}
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {mayGoBack && rows.some((row) => row.canReturn) && (
        <p className="line small dim going-back">
          <Icon name="info" />
          To go back makes a new revision, r{asset.revision + 1}, with the outputs of the earlier one. It waits for
          review{asset.public_revision ? `; r${asset.public_revision} stays public until then` : ""}.
        </p>
      )}
      {back && <GoBack asset={asset} row={back} onClose={() => setBack(null)} />}
    </>
  );
}

function GoBack({ asset, row, onClose }: { asset: AssetDetails; row: RevisionRow; onClose: () => void }) {
  const client = useQueryClient();
  const toast = useToast();
  const rollback = useMutation({
    mutationFn: () =>
      ok(
        api.POST("/api/platform/rollback", {
          body: { asset_id: asset.asset_id, revision: row.revision, expected_revision: asset.revision },
        }),
      ),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: assetKey(asset.asset_id) });
      toast({
        text: `r${asset.revision + 1} has the outputs of r${row.revision}, and waits for review.`,
        state: "pending_review",
      });
      onClose();
    },
  });
  return (
    <Dialog
      title={`Go back to r${row.revision}?`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={rollback.isPending} onClick={() => rollback.mutate()}>
            Make r{asset.revision + 1} of r{row.revision}
          </Button>
        </>
      }
    >
      {rollback.error ? <ErrorLine error={rollback.error} /> : null}
      <p>
        A new revision, r{asset.revision + 1}, gets the outputs of r{row.revision}. It waits for review before anybody
        outside sees it.
      </p>
    </Dialog>
  );
}
