import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "@/api/client";
import type { Platform } from "@/api/schema";
import { Button } from "@/components/Button";
import { Loaded } from "@/components/Loading";
import { State } from "@/components/states";
import { useMay } from "@/shell/session";
import { PlatformDialog } from "./PlatformDialog";
import { PLATFORMS_KEY } from "./queries";
import { SimpleTable } from "./Simple";

/** Partner applications, the identifiers of their data, and what they may use. */
export function Platforms() {
  const may = useMay();
  const platforms = useQuery({
    queryKey: PLATFORMS_KEY,
    queryFn: ({ signal }) => ok(api.GET("/api/platforms", { params: { query: { inactive: true } }, signal })),
  });
  const [edited, setEdited] = useState<Platform | "new" | null>(null);
  return (
    <Loaded query={platforms}>
      {({ platforms: rows }) => (
        <>
          {may("POST /api/platforms") && (
            <div className="toolbar">
              <Button kind="primary" icon="plus" onClick={() => setEdited("new")}>
                New platform
              </Button>
            </div>
          )}
          <SimpleTable
            label="Platforms"
            rows={rows}
            rowKey={(row) => row.platform_id}
            columns={[
              {
                head: "State",
                cell: (row) => (
                  <State state={row.is_active ? "completed" : "cancelled"}>{row.is_active ? "active" : "closed"}</State>
                ),
              },
              { head: "Platform", cell: (row) => <code>{row.platform_id}</code> },
              { head: "Name", cell: (row) => <span className="strong">{row.display_name}</span> },
              { head: "Identifiers", wraps: true, cell: (row) => (row.required_refs ?? []).join(", ") },
              { head: "Optional", wraps: true, desk: true, cell: (row) => (row.optional_refs ?? []).join(", ") || "–" },
              {
                head: "Workflows",
                wraps: true,
                desk: true,
                cell: (row) => row.workflows?.join(", ") ?? "all for partners",
              },
              { head: "Containers", wraps: true, desk: true, cell: (row) => row.containers?.join(", ") || "its own" },
              ...(may("PATCH /api/platforms/{platform_id}")
                ? [
                    {
                      head: "",
                      num: true,
                      cell: (row: Platform) => <Button onClick={() => setEdited(row)}>Edit</Button>,
                    },
                  ]
                : []),
            ]}
          />
          {edited && <PlatformDialog platform={edited === "new" ? null : edited} onClose={() => setEdited(null)} />}
        </>
      )}
    </Loaded>
  );
}
