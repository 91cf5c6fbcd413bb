/** The places of nodes and arrows of a workflow's graph, top to bottom, by dagre. */

import { Graph, layout } from "@dagrejs/dagre";

export interface GraphNode {
  id: string;
  /** `start`, `end`, `task`, `conditional`, `fan_out` or `fan_in`. */
  type: string;
  width: number;
  height: number;
}

export interface GraphEdge {
  from: string;
  to: string;
  label?: string | null;
}

export interface PlacedNode extends GraphNode {
  /** The middle of the node. */
  x: number;
  y: number;
  rank: number;
}

export interface PlacedEdge extends GraphEdge {
  path: string;
  labelX: number;
  labelY: number;
}

export interface PlacedGraph {
  width: number;
  height: number;
  /** From top to bottom, and from left to right. */
  nodes: PlacedNode[];
  edges: PlacedEdge[];
}

const MARGIN = 10;
const RANK_GAP = 22;
const NODE_GAP = 28;

interface Point {
  x: number;
  y: number;
}

export function place(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): PlacedGraph {
  const graph = new Graph({ multigraph: false });
  graph.setGraph({
    rankdir: "TB",
    ranksep: RANK_GAP,
    nodesep: NODE_GAP,
    edgesep: 16,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(nodes.map((node) => node.id));
  for (const node of nodes) graph.setNode(node.id, { width: node.width, height: node.height });
  const drawn = edges.filter((edge) => known.has(edge.from) && known.has(edge.to));
  const arrivals = new Map<string, number>();
  for (const edge of drawn) arrivals.set(edge.to, (arrivals.get(edge.to) ?? 0) + 1);
  // A node with one arrow to it stands close beneath where that comes from, and not beside what it waits for later.
  for (const edge of drawn) graph.setEdge(edge.from, edge.to, { weight: arrivals.get(edge.to) === 1 ? 2 : 1 });
  layout(graph);
  const placed = nodes.map((node) => ({ ...node, ...middle(graph.node(node.id)), rank: 0 }));
  setRanks(placed);
  const byId = new Map(placed.map((node) => [node.id, node]));
  const size = graph.graph();
  return {
    width: Math.ceil(size.width ?? 0),
    height: Math.ceil(size.height ?? 0),
    nodes: placed.sort((one, other) => one.rank - other.rank || one.x - other.x),
    edges: drawn.map((edge) => {
      const points: Point[] = graph.edge(edge.from, edge.to).points ?? [];
      return placeEdge(edge, byId.get(edge.from) as PlacedNode, byId.get(edge.to) as PlacedNode, points);
    }),
  };
}

function middle(node: { x?: number; y?: number }): Point {
  return { x: node.x ?? 0, y: node.y ?? 0 };
}

/** Nodes of one height are of one rank: dagre puts their middles on one line. */
function setRanks(nodes: PlacedNode[]): void {
  const heights = [...new Set(nodes.map((node) => Math.round(node.y)))].sort((one, other) => one - other);
  for (const node of nodes) node.rank = heights.indexOf(Math.round(node.y));
}

/** An arrow leaves at the bottom and arrives at the top; in between it goes through dagre's points, which avoid nodes. */
function placeEdge(edge: GraphEdge, from: PlacedNode, to: PlacedNode, points: Point[]): PlacedEdge {
  const begin = { x: from.x, y: from.y + from.height / 2 };
  const end = { x: to.x, y: to.y - to.height / 2 };
  const between = points.slice(1, -1).filter((point) => point.y > begin.y + RANK_GAP && point.y < end.y - RANK_GAP);
  const stops = [begin, ...simpler(between, begin, end), end];
  const path = stops.slice(1).reduce((text, stop, place) => text + curve(stops[place] as Point, stop), start(begin));
  const half = stops[1] as Point;
  return { ...edge, path, labelX: (begin.x + half.x) / 2, labelY: (begin.y + Math.min(half.y, begin.y + 30)) / 2 };
}

/** Without points that a straight arrow does not need. */
function simpler(points: Point[], begin: Point, end: Point): Point[] {
  const straight = points.every((point) => Math.abs(point.x - begin.x) < 1) && Math.abs(end.x - begin.x) < 1;
  return straight ? [] : points;
}

function start(point: Point): string {
  return `M${round(point.x)} ${round(point.y)}`;
}

function curve(from: Point, to: Point): string {
  if (Math.abs(from.x - to.x) < 1) return `V${round(to.y)}`;
  const half = round((from.y + to.y) / 2);
  return `C${round(from.x)} ${half} ${round(to.x)} ${half} ${round(to.x)} ${round(to.y)}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

export type Direction = "up" | "down" | "left" | "right";

/** The node that an arrow key leads to: up and down follow the graph's order, left and right stay in the rank. */
export function neighbour(nodes: readonly PlacedNode[], id: string | null, direction: Direction): string | null {
  const at = nodes.findIndex((node) => node.id === id);
  const current = nodes[at];
  if (!current) return nodes[0]?.id ?? null;
  if (direction === "down" || direction === "up")
    return nodes[Math.min(nodes.length - 1, Math.max(0, at + (direction === "down" ? 1 : -1)))]?.id ?? null;
  const beside = nodes[at + (direction === "right" ? 1 : -1)];
  return beside && beside.rank === current.rank ? beside.id : current.id;
}
