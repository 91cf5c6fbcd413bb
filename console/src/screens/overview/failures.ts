import type { JobHistogram } from "@/api/schema";
import { total } from "@/components/Bars";

type WorkflowCounts = JobHistogram["workflows"][number];

/** Workflows with the most failed jobs first, then those with the most jobs. */
export function worstFirst(workflows: readonly WorkflowCounts[]): WorkflowCounts[] {
  const failed = (row: WorkflowCounts) => row.counts.failed ?? 0;
  return [...workflows].sort((one, other) => failed(other) - failed(one) || total(other.counts) - total(one.counts));
}
