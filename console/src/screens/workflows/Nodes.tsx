import { useEffect, useRef } from "react";
import type { WorkflowDetails } from "@/api/schema";
import { Facts } from "@/components/Facts";
import { GraphView } from "@/components/graph/GraphView";
import { Scrolls } from "@/components/Scrolls";
import { useAddress } from "@/shell/address";
import { drawnEdges, drawnNodes, type NodeDefinition, type NodeDefinitions, taskOf } from "./graph";

/** The graph of a workflow beside the table of its nodes. A node that is chosen in the graph is marked in the table. */
export function Nodes({ workflow }: { workflow: WorkflowDetails }) {
  const nodes = (workflow.definition as { nodes: NodeDefinitions }).nodes;
  const [chosen, setChosen] = useAddress<string>("node", "");
  return (
    <div className="workflow-nodes">
      <GraphView
        label={`Graph of ${workflow.workflow_id}`}
        nodes={drawnNodes(nodes)}
        edges={drawnEdges(nodes)}
        selected={chosen || null}
        onSelect={setChosen}
        onOpen={setChosen}
      />
      <Scrolls className="sheet-table" label="Nodes">
        <table>
          <thead>
            <tr>
              <th>Node</th>
              <th>Type</th>
              <th>Handler</th>
              <th className="desk">Queue</th>
              <th>Next</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(nodes).map(([name, node]) => (
              <NodeRow key={name} name={name} node={node} chosen={name === chosen} />
            ))}
          </tbody>
        </table>
        <div className="in">
          <Facts
            facts={[
              ["Definition", <code key="hash">{workflow.definition_hash.slice(0, 13)}</code>],
              ["Version", workflow.version],
              ["Started by", workflow.started_by],
            ]}
          />
        </div>
      </Scrolls>
    </div>
  );
}

function NodeRow({ name, node, chosen }: { name: string; node: NodeDefinition; chosen: boolean }) {
  const row = useRef<HTMLTableRowElement>(null);
  const task = taskOf(node);
  useEffect(() => {
    if (chosen) row.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <tr ref={row} aria-selected={chosen || undefined}>
      <td className="strong">{name}</td>
      <td>{node.type.replaceAll("_", " ")}</td>
      <td>
        <code>{task.handler ?? ""}</code>
      </td>
      <td className="desk">
        <code>{task.queue ?? ""}</code>
      </td>
      <td className="wraps">
        {node.branches?.map((branch) => `${branch.condition ?? "otherwise"} → ${branch.next.join(", ")}`).join("; ") ??
          node.next?.join(", ")}
      </td>
    </tr>
  );
}
