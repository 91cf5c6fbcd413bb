import { useQuery } from "@tanstack/react-query";
import { api, ok } from "@/api/client";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { Loaded } from "@/components/Loading";
import { State } from "@/components/states";
import { Age } from "@/components/Time";
import { useMay } from "@/shell/session";
import { CIRCUITS_KEY } from "./queries";
import { SimpleTable } from "./Simple";
import { useAction } from "./useAction";

/** Handlers that failed in a row and are held back. */
export function Circuits() {
  const may = useMay();
  const circuits = useQuery({
    queryKey: CIRCUITS_KEY,
    queryFn: () => ok(api.GET("/api/v1/circuits")),
    refetchInterval: 10_000,
  });
  const close = useAction({
    run: (handler: string) => ok(api.POST("/api/v1/circuits/{handler}/close", { params: { path: { handler } } })),
    done: (_, handler) => `Tasks of ${handler} begin again.`,
    refresh: [CIRCUITS_KEY],
  });
  return (
    <Loaded query={circuits}>
      {({ circuits: rows }) =>
        rows.length === 0 ? (
          <Empty title="No handler is held back">
            A handler that fails again and again is held back, so that it does not use up the tries of all tasks.
          </Empty>
        ) : (
          <SimpleTable
            label="Circuits"
            rows={rows}
            rowKey={(row) => row.handler}
            columns={[
              {
                head: "State",
                cell: (row) => <State state={row.state === "closed" ? "completed" : "failed"}>{row.state}</State>,
              },
              { head: "Handler", cell: (row) => <code>{row.handler}</code> },
              { head: "Failures", num: true, cell: (row) => row.failures },
              { head: "Last error", wraps: true, cell: (row) => row.error_message },
              { head: "Held back", num: true, cell: (row) => <Age at={row.opened_at} /> },
              {
                head: "",
                num: true,
                cell: (row) =>
                  may("POST /api/v1/circuits/{handler}/close") && (
                    <Button disabled={close.isPending} onClick={() => close.mutate(row.handler)}>
                      Begin again
                    </Button>
                  ),
              },
            ]}
          />
        )
      }
    </Loaded>
  );
}
