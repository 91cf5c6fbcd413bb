import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, ok } from "@/api/client";
import type { KeyCreated, KeyView, NewKey } from "@/api/schema";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Loaded } from "@/components/Loading";
import { Note } from "@/components/Note";
import { Age, Time } from "@/components/Time";
import { Dialog } from "@/shell/Dialog";
import { KEYS_KEY, PLATFORMS_KEY } from "./queries";
import { SimpleTable } from "./Simple";
import { useAction } from "./useAction";

const ROLES = ["reader", "submitter", "reviewer", "operator", "admin"] as const;
const DAY_SECONDS = 86_400;
const LIFETIMES = [
  [0, "never"],
  [7, "in 7 days"],
  [30, "in 30 days"],
  [90, "in 90 days"],
  [365, "in a year"],
] as const;

/** Keys of the API: create one, revoke one. */
export function Keys() {
  const keys = useQuery({
    queryKey: KEYS_KEY,
    queryFn: () => ok(api.GET("/api/v1/keys", { params: { query: { limit: 500 } } })),
  });
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<KeyView | null>(null);
  return (
    <Loaded query={keys}>
      {({ keys: rows }) => (
        <>
          <div className="toolbar">
            <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
              New key
            </Button>
          </div>
          <SimpleTable
            label="Keys"
            rows={rows}
            rowKey={(key) => key.key_id}
            columns={[
              { head: "Name", cell: (key) => <span className="strong">{key.name}</span> },
              { head: "Roles", cell: (key) => key.roles.join(", ") },
              { head: "Platform", cell: (key) => key.platform_id ?? "–" },
              { head: "Created", num: true, desk: true, cell: (key) => <Time at={key.created_at} /> },
              { head: "Ends", num: true, desk: true, cell: (key) => <Time at={key.expires_at} /> },
              { head: "Last used", num: true, cell: (key) => <Age at={key.last_used_at} /> },
              {
                head: "",
                num: true,
                cell: (key) => (
                  <Button kind="danger" onClick={() => setRevoking(key)}>
                    Revoke
                  </Button>
                ),
              },
            ]}
          />
          {creating && <CreateDialog onClose={() => setCreating(false)} />}
          {revoking && <RevokeDialog apiKey={revoking} onClose={() => setRevoking(null)} />}
        </>
      )}
    </Loaded>
  );
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [roles, setRoles] = useState<ReadonlySet<(typeof ROLES)[number]>>(new Set());
  const [platform, setPlatform] = useState("");
  const [lifetime, setLifetime] = useState("");
  const platforms = useQuery({
    queryKey: PLATFORMS_KEY,
    queryFn: ({ signal }) => ok(api.GET("/api/platforms", { params: { query: { inactive: true } }, signal })),
  });
  const [created, setCreated] = useState<KeyCreated | null>(null);
  const create = useAction({
    run: (order: NewKey) => ok(api.POST("/api/v1/keys", { body: order })),
    done: (key) => `Created the key ${key.name}.`,
    refresh: [KEYS_KEY],
    tells: true,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const order: NewKey = {
      roles: [...roles],
      may_name: "allowed",
      ...(name ? { name } : {}),
      ...(platform && roles.has("submitter") ? { platform_id: platform } : {}),
      ...(lifetime ? { expires_seconds: Number(lifetime) } : {}),
    };
    create.mutate(order, { onSuccess: setCreated });
  };
  if (created) {
    return (
      <Dialog title="The new key" onClose={onClose} footer={<Button onClick={onClose}>I have kept it</Button>}>
        <Note kind="warn">It is shown only now. Copy it to where its holder finds it.</Note>
        <pre className="secret">{created.key}</pre>
      </Dialog>
    );
  }
  return (
    <Dialog title="New key" onClose={onClose}>
      <form className="stack3" onSubmit={submit}>
        {create.error ? <ErrorLine error={create.error} /> : null}
        <Field label="Name of its holder" help="Shown in the audit.">
          {(field) => (
            <input {...field} className="input" value={name} onChange={(event) => setName(event.target.value)} />
          )}
        </Field>
        <fieldset className="stack">
          <legend className="label">Roles</legend>
          {ROLES.map((role) => (
            <label key={role} className="check">
              <input
                type="checkbox"
                checked={roles.has(role)}
                onChange={() =>
                  setRoles((earlier) => {
                    const next = new Set(earlier);
                    if (!next.delete(role)) next.add(role);
                    return next;
                  })
                }
              />
              <span>{role}</span>
            </label>
          ))}
        </fieldset>
        {roles.has("submitter") && (
          <Field label="Platform" help="The partner application that a submitter submits for.">
            {(field) => (
              <select
                {...field}
                required
                className="input"
                value={platform}
                onChange={(event) => setPlatform(event.target.value)}
              >
                <option value="" />
                {(platforms.data?.platforms ?? []).map((row) => (
                  <option key={row.platform_id} value={row.platform_id}>
                    {row.platform_id}: {row.display_name}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        <Field label="Ends" help="It can be revoked at any time.">
          {(field) => (
            <select {...field} className="input" value={lifetime} onChange={(event) => setLifetime(event.target.value)}>
              {LIFETIMES.map(([days, words]) => (
                <option key={days} value={days === 0 ? "" : days * DAY_SECONDS}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Button type="submit" kind="primary" disabled={roles.size === 0 || create.isPending}>
          Create
        </Button>
      </form>
    </Dialog>
  );
}

function RevokeDialog({ apiKey, onClose }: { apiKey: KeyView; onClose: () => void }) {
  const revoke = useAction({
    run: (keyId: string) => ok(api.DELETE("/api/v1/keys/{key_id}", { params: { path: { key_id: keyId } } })),
    done: (key) => `Revoked ${key.name}. Its sessions have ended.`,
    refresh: [KEYS_KEY],
  });
  return (
    <Dialog
      title={`Revoke ${apiKey.name}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button
            kind="danger"
            disabled={revoke.isPending}
            onClick={() => revoke.mutate(apiKey.key_id, { onSettled: onClose })}
          >
            Revoke
          </Button>
        </>
      }
    >
      <p>
        Programs that use it are refused within ten seconds, and its holder is signed out of the console at once. It
        cannot be taken back.
      </p>
    </Dialog>
  );
}
