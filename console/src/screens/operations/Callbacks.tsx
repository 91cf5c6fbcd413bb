import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, ok } from "@/api/client";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { Loaded } from "@/components/Loading";
import { State } from "@/components/states";
import { Age } from "@/components/Time";
import { shortId } from "@/format/number";
import { useMay } from "@/shell/session";
import { CALLBACKS_KEY } from "./queries";
import { SimpleTable } from "./Simple";
import { useAction } from "./useAction";

const SIGNS: Record<string, string> = {
  delivered: "completed",
  failed: "failed",
  given_up: "failed",
  pending: "pending",
};

/** Calls that tell submitters that a job has ended, with the reason of those that failed. */
export function Callbacks() {
  const may = useMay();
  const callbacks = useQuery({
    queryKey: CALLBACKS_KEY,
    queryFn: () => ok(api.GET("/api/v1/callbacks", { params: { query: { limit: 200 } } })),
    refetchInterval: 10_000,
  });
  const send = useAction({
    run: (jobId: string) => ok(api.POST("/api/v1/callbacks/{job_id}/send", { params: { path: { job_id: jobId } } })),
    done: () => "The call is made again.",
    refresh: [CALLBACKS_KEY],
  });
  return (
    <Loaded query={callbacks}>
      {({ callbacks: rows }) =>
        rows.length === 0 ? (
          <Empty title="No callbacks">A submission with a callback URL is told when its job has ended.</Empty>
        ) : (
          <SimpleTable
            label="Callbacks"
            rows={rows}
            rowKey={(row) => row.delivery_id}
            columns={[
              {
                head: "State",
                cell: (row) => <State state={SIGNS[row.status] ?? "pending"}>{row.status.replaceAll("_", " ")}</State>,
              },
              {
                head: "Job",
                cell: (row) => (
                  <Link className="mono" href={`/jobs/${row.job_id}`}>
                    {shortId(row.job_id)}
                  </Link>
                ),
              },
              { head: "To", wraps: true, cell: (row) => row.url },
              { head: "Tries", num: true, cell: (row) => row.attempts },
              { head: "Answer", num: true, desk: true, cell: (row) => row.last_status_code ?? "–" },
              { head: "Reason", wraps: true, desk: true, cell: (row) => row.reason },
              { head: "Next", num: true, desk: true, cell: (row) => <Age at={row.next_attempt_at} /> },
              {
                head: "",
                num: true,
                cell: (row) =>
                  may("POST /api/v1/callbacks/{job_id}/send") && (
                    <Button disabled={send.isPending} onClick={() => send.mutate(row.job_id)}>
                      Send again
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
