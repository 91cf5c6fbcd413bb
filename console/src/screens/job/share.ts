import type { JobDetails } from "./data";

type Progress = Pick<
  JobDetails["progress"],
  "fraction" | "nodes_total" | "nodes_ended" | "items_total" | "items_ended"
>;

/** The share of a job that is done, from 0 to 1. With a fan-out each item counts as a node does: a job of ten nodes whose
 * ten thousand items have just begun is not half done. */
export function shareOf(progress: Progress): number {
  const { items_total: items, items_ended = 0, nodes_total: nodes, nodes_ended = 0 } = progress;
  if (!items || !nodes) return progress.fraction;
  return Math.min(1, (nodes_ended + items_ended) / (nodes + items));
}
