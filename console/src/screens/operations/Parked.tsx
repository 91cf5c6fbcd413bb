import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, ok } from "@/api/client";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { Loaded } from "@/components/Loading";
import { Age } from "@/components/Time";
import { shortId } from "@/format/number";
import { useMay } from "@/shell/session";
import { PARKED_KEY } from "./queries";
import { SimpleTable } from "./Simple";
import { useAction } from "./useAction";

/** Jobs that geomill has set aside because they cannot go on by themselves. */
export function Parked() {
  const may = useMay();
  const parked = useQuery({
    queryKey: PARKED_KEY,
    queryFn: () => ok(api.GET("/api/v1/jobs/parked")),
    refetchInterval: 10_000,
  });
  const release = useAction({
    run: (jobId: string) => ok(api.POST("/api/v1/jobs/{job_id}/release", { params: { path: { job_id: jobId } } })),
    done: (_, jobId) => `The job ${shortId(jobId)} goes on.`,
    refresh: [PARKED_KEY, ["health"]],
  });
  return (
    <Loaded query={parked}>
      {({ jobs }) =>
        jobs.length === 0 ? (
          <Empty title="No job is parked">A job that cannot go on by itself is set aside here, with the reason.</Empty>
        ) : (
          <SimpleTable
            label="Parked jobs"
            rows={jobs}
            rowKey={(job) => job.job_id}
            columns={[
              {
                head: "Job",
                cell: (job) => (
                  <Link className="mono" href={`/jobs/${job.job_id}`}>
                    {shortId(job.job_id)}
                  </Link>
                ),
              },
              { head: "Workflow", cell: (job) => job.workflow_id },
              { head: "Why", wraps: true, cell: (job) => job.parked_reason },
              { head: "Parked", num: true, cell: (job) => <Age at={job.parked_at} /> },
              {
                head: "",
                num: true,
                cell: (job) =>
                  may("POST /api/v1/jobs/{job_id}/release") && (
                    <Button disabled={release.isPending} onClick={() => release.mutate(job.job_id)}>
                      Let it go on
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
