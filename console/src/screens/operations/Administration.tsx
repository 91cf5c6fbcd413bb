import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "@/api/client";
import { Empty } from "@/components/Empty";
import { Loaded } from "@/components/Loading";
import { Time } from "@/components/Time";
import { SimpleTable } from "./Simple";

/** The settings of the gateway that answers. Secrets are masked by the gateway. */
export function Settings() {
  const settings = useQuery({ queryKey: ["settings"], queryFn: () => ok(api.GET("/api/v1/settings")) });
  const [all, setAll] = useState(false);
  return (
    <Loaded query={settings}>
      {({ settings: rows }) => (
        <>
          <div className="toolbar">
            <label className="check">
              <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} />
              <span>Also those that have their default</span>
            </label>
          </div>
          {rows.some((row) => row.is_set) || all ? (
            <SimpleTable
              label="Settings in effect"
              rows={rows.filter((row) => all || row.is_set)}
              rowKey={(row) => row.name}
              columns={[
                { head: "Setting", cell: (row) => <code>{row.name}</code> },
                {
                  head: "Value",
                  wraps: true,
                  cell: (row) => <code>{row.secret && row.is_set ? "…" : JSON.stringify(row.value)}</code>,
                },
                {
                  head: "Default",
                  desk: true,
                  wraps: true,
                  cell: (row) => <code className="dim">{JSON.stringify(row.default)}</code>,
                },
                { head: "What it does", desk: true, wraps: true, cell: (row) => row.description },
              ]}
            />
          ) : (
            <Empty title="Every setting has its default">Settings are environment variables of the gateway.</Empty>
          )}
        </>
      )}
    </Loaded>
  );
}

/** What operators and administrators have changed. */
export function Audit() {
  const audit = useQuery({
    queryKey: ["audit"],
    queryFn: () => ok(api.GET("/api/v1/audit", { params: { query: { limit: 200 } } })),
  });
  return (
    <Loaded query={audit}>
      {({ entries: rows }) =>
        rows.length === 0 ? (
          <Empty title="Nobody has changed anything yet">
            Changes of keys, schedules, platforms, dead letters and callbacks are here.
          </Empty>
        ) : (
          <SimpleTable
            label="Audit"
            rows={rows}
            rowKey={(row) => String(row.audit_id)}
            columns={[
              { head: "When", cell: (row) => <Time at={row.at} /> },
              { head: "Who", cell: (row) => row.actor },
              { head: "What", cell: (row) => row.action.replaceAll("_", " ") },
              { head: "Of", cell: (row) => <code>{row.target}</code> },
              { head: "Why", wraps: true, cell: (row) => row.reason ?? "–" },
            ]}
          />
        )
      }
    </Loaded>
  );
}
