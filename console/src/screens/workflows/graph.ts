/** The graph of a workflow that does not run, from its definition. */

import type { DrawnEdge, DrawnNode } from "@/components/graph/GraphView";

interface TaskDefinition {
  handler?: string;
  queue?: string;
}

export interface NodeDefinition extends TaskDefinition {
  type: string;
  task?: TaskDefinition;
  next?: readonly string[];
  branches?: readonly { name?: string | null; condition?: string | null; next: readonly string[] }[];
}

export type NodeDefinitions = Readonly<Record<string, NodeDefinition>>;

const NODE = { width: 160, height: 30 };
const TERMINAL = { width: 60, height: 14 };

/** The handler and the queue of a task, or of the items of a fan-out. */
export function taskOf(node: NodeDefinition): TaskDefinition {
  return { handler: node.handler ?? node.task?.handler, queue: node.queue ?? node.task?.queue };
}

export function drawnNodes(nodes: NodeDefinitions): DrawnNode[] {
  return Object.entries(nodes).map(([id, node]) => {
    const size = node.type === "start" || node.type === "end" ? TERMINAL : NODE;
    const handler = taskOf(node).handler;
    const kind = node.type.replaceAll("_", "-");
    return { id, type: node.type, ...size, spoken: handler ? `${kind}, runs ${handler}` : kind };
  });
}

/** An arrow for each pair of nodes. Branches of a conditional that lead to the same node share one. */
export function drawnEdges(nodes: NodeDefinitions): DrawnEdge[] {
  return Object.entries(nodes).flatMap(([from, node]) =>
    [...labelsOf(node)].map(([to, labels]) => ({ from, to, label: labels.join(" or ") || null, taken: true })),
  );
}

function labelsOf(node: NodeDefinition): Map<string, string[]> {
  const labels = new Map<string, string[]>((node.next ?? []).map((to) => [to, []]));
  for (const branch of node.branches ?? [])
    for (const to of new Set(branch.next))
      labels.set(to, [...(labels.get(to) ?? []), branch.name || branch.condition || "otherwise"]);
  return labels;
}
