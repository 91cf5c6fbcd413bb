import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "@/api/client";
import type { AssetDetails } from "@/api/schema";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Dialog } from "@/shell/Dialog";
import { useToast } from "@/shell/toasts";
import { assetKey, nameOf } from "./data";
import { consequenceOf, type DecisionName } from "./decisions";

export const DECISIONS: Record<DecisionName, { menu: string; title: string; done: string; danger: boolean }> = {
  export: { menu: "Retry the export", title: "Retry the export", done: "is exported again", danger: false },
  public: { menu: "Make public …", title: "Make public", done: "is public", danger: false },
  ouo: {
    menu: "Restrict to official use …",
    title: "Restrict to official use",
    done: "is for official use",
    danger: true,
  },
  revoke: { menu: "Revoke the approval …", title: "Revoke the approval", done: "is revoked", danger: true },
  unpublish: { menu: "Unpublish …", title: "Unpublish", done: "is unpublished", danger: true },
};

interface DecisionDialogProps {
  asset: AssetDetails;
  decision: DecisionName;
  onClose: () => void;
}

/** Tells what a decision does, and makes it about the revision that is on the page. */
export function DecisionDialog({ asset, decision, onClose }: DecisionDialogProps) {
  const client = useQueryClient();
  const toast = useToast();
  const [reason, setReason] = useState("");
  const words = DECISIONS[decision];
  const decide = useMutation({
    mutationFn: () => send(asset, decision, reason.trim()),
    onSuccess: (made) => {
      toast({
        text: `${nameOf(asset)} ${words.done}.`,
        state: words.danger ? "cancelled" : "approved",
        link: made.export_job_id ? { href: `/jobs/${made.export_job_id}`, text: "Its job" } : undefined,
      });
      void client.invalidateQueries({ queryKey: ["assets"] });
      void client.invalidateQueries({ queryKey: assetKey(asset.asset_id) });
      onClose();
    },
  });
  const needsReason = decision === "revoke";
  return (
    <Dialog
      title={words.title}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button
            kind={words.danger ? "danger" : "primary"}
            disabled={decide.isPending || (needsReason && !reason.trim())}
            onClick={() => decide.mutate()}
          >
            {words.title}
          </Button>
        </>
      }
    >
      {decide.error ? <ErrorLine error={decide.error} /> : null}
      <p>
        <span className="strong">{nameOf(asset)}</span> r{asset.revision}. {consequenceOf(decision, asset.revision)}
      </p>
      {(needsReason || decision === "unpublish") && (
        <Field
          label="Reason"
          aside={needsReason ? undefined : <span className="dim">optional</span>}
          help="It is in the audit, and its partner reads it."
        >
          {(attributes) => (
            <input
              className="input"
              maxLength={1000}
              value={reason}
              onChange={(event) => setReason(event.target.value)}
              {...attributes}
            />
          )}
        </Field>
      )}
    </Dialog>
  );
}

function send(asset: AssetDetails, decision: DecisionName, reason: string) {
  const common = { asset_id: asset.asset_id, expected_revision: asset.revision };
  switch (decision) {
    case "public":
    case "ouo":
      return ok(api.POST("/api/platform/approve", { body: { ...common, clearance_level: decision } }));
    case "revoke":
      return ok(api.POST("/api/platform/revoke", { body: { ...common, reason } }));
    case "unpublish":
      return ok(
        api.POST("/api/platform/unpublish", {
          body: { ...common, delete_data: false, dry_run: false, ...(reason ? { reason } : {}) },
        }),
      );
    case "export":
      return ok(api.POST("/api/platform/export/retry", { body: common }));
  }
}
