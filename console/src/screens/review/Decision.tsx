/** The decision: clearance and approval, or a reason and rejection. The request says which revision was looked at. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api, ok } from "@/api/client";
import { asProblem } from "@/api/problem";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Note } from "@/components/Note";
import { useKeys } from "@/shell/keys";
import { useMay } from "@/shell/session";
import { type Toast, useToast } from "@/shell/toasts";
import type { AssetDetails } from "./queries";

type Clearance = "ouo" | "public";

const TEMPLATES = [
  ["Extent is wrong", "The extent is wrong: the data does not lie where it should. Check its CRS and submit it again."],
  ["Attributes are missing", "Attributes are missing. Add them and submit the file again."],
  ["CRS is wrong", "The CRS is wrong. Correct it, or give source_crs, and submit the file again."],
  ["Owner has not agreed", "The owner of the data has not agreed to its publication."],
] as const;

/** The consequence of an approval, told before the click. */
export function consequence(clearance: Clearance, publicRevision: number | null): string {
  if (clearance === "public") return publicRevision ? `Replaces r${publicRevision} outside` : "Everybody sees it";
  return publicRevision ? `Takes r${publicRevision} away from outside` : "Stays inside";
}

interface DecisionProps {
  asset: AssetDetails;
  /** The revision that has come meanwhile, if one has; null if the asset no longer waits. */
  changed: { revision: number | null } | null;
  rejecting: boolean;
  onRejecting: (rejecting: boolean) => void;
  onChanged: () => void;
  onLook: () => void;
  onDecided: () => void;
}

export function Decision(properties: DecisionProps) {
  const { asset, changed, rejecting } = properties;
  const client = useQueryClient();
  const toast = useToast();
  const decide = useMutation({
    mutationFn: (choice: { clearance: Clearance } | { reason: string }) => {
      const common = { asset_id: asset.asset_id, expected_revision: asset.revision };
      return "clearance" in choice
        ? ok(api.POST("/api/platform/approve", { body: { ...common, clearance_level: choice.clearance } }))
        : ok(api.POST("/api/platform/reject", { body: { ...common, reason: choice.reason } }));
    },
    onSuccess: (made) => {
      toast(toastOf(asset.stac_item_id, made));
      void client.invalidateQueries({ queryKey: ["assets"] });
      properties.onDecided();
    },
    onError: (error) => {
      if (asProblem(error).status === 409) properties.onChanged();
    },
  });
  const refused = decide.error && asProblem(decide.error).status !== 409 ? decide.error : null;
  return (
    <div className="act">
      {changed && <Changed asset={asset} changed={changed} onLook={properties.onLook} />}
      {refused && <ErrorLine error={refused} />}
      {rejecting ? (
        <Rejecting
          asset={asset}
          disabled={decide.isPending || changed !== null}
          onReject={(reason) => decide.mutate({ reason })}
          onBack={() => properties.onRejecting(false)}
        />
      ) : (
        <Approving
          asset={asset}
          disabled={decide.isPending || changed !== null}
          onApprove={(clearance) => decide.mutate({ clearance })}
          onReject={() => properties.onRejecting(true)}
        />
      )}
    </div>
  );
}

function toastOf(
  name: string,
  made: { decision: string; revision: number; clearance_state: string; export_job_id?: string | null },
): Toast {
  const words = made.decision === "rejected" ? "is rejected" : `is approved as ${made.clearance_state}`;
  const link = made.export_job_id ? { href: `/jobs/${made.export_job_id}`, text: "Export job" } : undefined;
  return {
    text: `${name} r${made.revision} ${words}.`,
    state: made.decision === "rejected" ? "rejected" : "approved",
    link,
  };
}

function Changed({
  asset,
  changed,
  onLook,
}: Pick<DecisionProps, "asset" | "onLook"> & { changed: { revision: number | null } }) {
  const { revision } = changed;
  const words =
    revision !== null && revision !== asset.revision
      ? `r${revision} came while you looked at r${asset.revision}.`
      : `r${asset.revision} no longer waits: somebody has decided, or it is being processed again.`;
  return (
    <div role="alert">
      <Note
        kind="info"
        more={
          <>
            You have decided nothing.{" "}
            <button type="button" className="link accent" onClick={onLook}>
              {revision !== null && revision !== asset.revision ? `Look at r${revision}` : "Look at the next one"}
            </button>
          </>
        }
      >
        <span className="strong">{words}</span>
      </Note>
    </div>
  );
}

function Approving(properties: {
  asset: AssetDetails;
  disabled: boolean;
  onApprove: (clearance: Clearance) => void;
  onReject: () => void;
}) {
  const { asset, disabled } = properties;
  const may = useMay();
  const [clearance, setClearance] = useState<Clearance>(asset.proposed_clearance === "public" ? "public" : "ouo");
  const [asks, setAsks] = useState(false);
  const word = clearance === "public" ? "public" : "official use";
  const choose = (value: Clearance) => {
    setClearance(value);
    setAsks(false);
  };
  const approve = () => {
    if (disabled) return;
    if (clearance === "public" && !asks) setAsks(true);
    else properties.onApprove(clearance);
  };
  useKeys([
    { keys: "1", label: "official use", run: () => choose("ouo") },
    { keys: "2", label: "public", run: () => choose("public") },
    { keys: "a", label: asks ? "yes, make it public" : "approve", shown: true, run: approve },
    { keys: "r", label: "reject", shown: true, run: properties.onReject },
    ...(asks ? [{ keys: "Escape", label: "back", run: () => setAsks(false) }] : []),
  ]);
  return (
    <>
      <fieldset>
        <legend className="hidden">Clearance</legend>
        <div className="choice">
          {(["ouo", "public"] as const).map((value) => (
            <label key={value}>
              <input type="radio" name="clearance" checked={clearance === value} onChange={() => choose(value)} />
              <span className="strong">
                {value === "ouo" ? "Official use" : "Public"} <kbd className="desk">{value === "ouo" ? "1" : "2"}</kbd>
              </span>
              <span className="small soft">{consequence(value, asset.public_revision)}</span>
            </label>
          ))}
        </div>
      </fieldset>
      {asks && (
        <p className="small strong" role="alert">
          Everybody will see r{asset.revision}, also outside. Sure?
        </p>
      )}
      <div className="two">
        <Button kind="primary" size="large" hint="A" disabled={disabled} onClick={approve}>
          {asks ? `Yes, make r${asset.revision} public` : `Approve r${asset.revision} as ${word}`}
        </Button>
        {asks ? (
          <Button size="large" hint="Esc" onClick={() => setAsks(false)}>
            Back
          </Button>
        ) : (
          may("POST /api/platform/reject") && (
            <Button kind="danger" size="large" hint="R" disabled={disabled} onClick={properties.onReject}>
              Reject
            </Button>
          )
        )}
      </div>
      <p className="small dim desk">
        You decide on r{asset.revision}. If it changes before you do, nothing is decided and you look again.
      </p>
    </>
  );
}

function Rejecting(properties: {
  asset: AssetDetails;
  disabled: boolean;
  onReject: (reason: string) => void;
  onBack: () => void;
}) {
  const { asset } = properties;
  const [reason, setReason] = useState("");
  const text = useRef<HTMLTextAreaElement>(null);
  useEffect(() => text.current?.focus(), []);
  const ready = reason.trim() !== "" && !properties.disabled;
  const send = () => ready && properties.onReject(reason.trim());
  useKeys([
    { keys: "Ctrl+Enter", label: "send the reason", shown: true, run: send },
    { keys: "Escape", label: "back", shown: true, run: properties.onBack },
  ]);
  return (
    <>
      <div className="line">
        <h2 className="grow">Reject r{asset.revision}</h2>
        <Button kind="quiet" hint="Esc" onClick={properties.onBack}>
          Back
        </Button>
      </div>
      <fieldset className="line wrap" aria-label="Templates of reasons">
        {TEMPLATES.map(([name, words]) => (
          <button
            key={name}
            type="button"
            className="tag template"
            onClick={() => {
              setReason((before) => (before.trim() ? `${before.trim()} ${words}` : words));
              text.current?.focus();
            }}
          >
            {name}
          </button>
        ))}
      </fieldset>
      <Field label="Reason, which the partner reads">
        {(attributes) => (
          <textarea
            ref={text}
            className="input read"
            rows={3}
            maxLength={2000}
            {...attributes}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        )}
      </Field>
      <Button kind="danger" size="large" hint="Ctrl Enter" disabled={!ready} onClick={send}>
        Reject r{asset.revision}
      </Button>
      <p className="small dim">
        {asset.public_revision ? `r${asset.public_revision} stays public. ` : ""}Only a new submission leads on.
      </p>
    </>
  );
}
