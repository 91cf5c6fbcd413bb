import { Empty } from "@/components/Empty";
import { Tabs } from "@/components/Tabs";
import { useAddress } from "@/shell/address";
import { About } from "./About";
import { Compare } from "./Compare";
import type { ItemSummary, JobDetails, NodeView } from "./data";
import { Events } from "./Events";
import { Items } from "./Items";

type LowerTab = "items" | "events" | "about" | "compare";

/** Beneath the timeline: items of a fan-out, events, the job itself, and its difference from another. */
export function Lower(properties: {
  job: JobDetails;
  /** The fan-out whose items are shown. */
  node: NodeView | undefined;
  summaries: ReadonlyMap<string, ItemSummary>;
  opened: number | null;
  onOpen: (nodeId: string, index: number | null) => void;
  onRetryFailed?: () => void;
}) {
  const { job, node, onOpen } = properties;
  const [view, setView] = useAddress<LowerTab>("view", node ? "items" : "events");
  const items = {
    name: "items" as const,
    label: "Items",
    content: () =>
      node ? (
        <Items
          key={node.node_id}
          jobId={job.job_id}
          node={node}
          summary={properties.summaries.get(node.node_id)}
          opened={properties.opened}
          onOpen={(index) => onOpen(node.node_id, index)}
          onRetryFailed={properties.onRetryFailed}
        />
      ) : (
        <Empty title="No items">The job has no fan-out that has begun.</Empty>
      ),
  };
  return (
    <section className="lower" aria-label="More about the job">
      <Tabs
        label="More about the job"
        current={view}
        onChange={setView}
        tabs={[
          ...(node ? [items] : []),
          { name: "events", label: "Events", content: () => <Events jobId={job.job_id} onOpen={onOpen} /> },
          { name: "about", label: "Inputs and result", content: () => <About job={job} /> },
          { name: "compare", label: "Compare", content: () => <Compare job={job} /> },
        ]}
      />
    </section>
  );
}
