/** A graph of nodes as SVG. Screen readers get it as a list of buttons in the graph's order. */

import { memo, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "@/components/Button";
import { Glyph } from "@/components/states";
import { useKeys } from "@/shell/keys";
import "./graph.css";
import { type Direction, type GraphEdge, type GraphNode, neighbour, type PlacedNode, place } from "./layout";

export interface DrawnNode extends GraphNode {
  /** The state of the node; a workflow that does not run has none. */
  state?: string;
  /** What stands at the right, such as how long it ran. */
  aside?: string;
  /** What screen readers say after the name. */
  spoken: string;
  /** What stands inside instead of name and sign. Its zero is the node's top left corner. */
  inside?: ReactNode;
}

export interface DrawnEdge extends GraphEdge {
  /** `false`: the job did not go this way. `null`: it has not been decided. */
  taken?: boolean | null;
}

interface GraphViewProps {
  label: string;
  nodes: readonly DrawnNode[];
  edges: readonly DrawnEdge[];
  selected: string | null;
  onSelect: (id: string) => void;
  onOpen: (id: string) => void;
}

const ZOOM = 1.25;
const MOST_ON_LARGE = 1.4;
const LEAST_FIT = 0.55;
const PADDING = 16;

export function GraphView(properties: GraphViewProps) {
  const { nodes, edges, selected, onSelect, onOpen } = properties;
  const frame = useRef<HTMLDivElement>(null);
  // The layout depends on shapes and arrows alone: a change of state does not place anything anew.
  const shape = JSON.stringify([
    nodes.map((node) => [node.id, node.type, node.width, node.height]),
    edges.map((edge) => [edge.from, edge.to, edge.label]),
  ]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for both
  const placed = useMemo(() => place(nodes, edges), [shape]);
  const [zoom, setZoom] = useState<number | null>(null);
  const fit = useFit(frame, placed.width, placed.height);
  const scale = zoom ?? fit;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const taken = new Map(edges.map((edge) => [`${edge.from}\n${edge.to}`, edge.taken]));
  const focus = (id: string) => {
    const element = frame.current?.querySelector<SVGElement>(`[data-node="${CSS.escape(id)}"]`);
    element?.focus({ preventScroll: true });
    element?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const move = (direction: Direction) => {
    const next = neighbour(placed.nodes, selected, direction);
    if (next === null) return;
    onSelect(next);
    focus(next);
  };
  useKeys([
    { keys: "ArrowDown", label: "node", sign: "ArrowUp ArrowDown", shown: true, run: () => move("down") },
    { keys: "ArrowUp", label: "previous node", run: () => move("up") },
    { keys: "ArrowRight", label: "node at the right", run: () => move("right") },
    { keys: "ArrowLeft", label: "node at the left", run: () => move("left") },
    { keys: "Enter", label: "open", shown: true, run: () => selected && onOpen(selected) },
    { keys: "0", label: "fit graph", shown: true, run: () => setZoom(null) },
  ]);
  const entry = selected && byId.has(selected) ? selected : placed.nodes[0]?.id;
  return (
    <section className="graph-frame" aria-label={properties.label}>
      <div className="graph-scroller" ref={frame}>
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot hold shapes */}
        <svg
          className="graph"
          width={placed.width * scale}
          height={placed.height * scale}
          viewBox={`0 0 ${placed.width} ${placed.height}`}
          role="group"
          aria-label={`${properties.label}, ${nodes.length} nodes`}
        >
          {placed.edges.map((edge) => (
            <Arrow key={`${edge.from} ${edge.to}`} {...edge} taken={taken.get(`${edge.from}\n${edge.to}`) ?? null} />
          ))}
          {placed.nodes.map((place) => (
            <NodeShape
              key={place.id}
              place={place}
              node={byId.get(place.id) ?? { ...place, spoken: "" }}
              selected={place.id === selected}
              entry={place.id === entry}
              onSelect={onSelect}
              onOpen={onOpen}
            />
          ))}
        </svg>
      </div>
      <fieldset className="float graph-zoom" aria-label="Size of the graph">
        <Button kind="quiet" icon="plus" aria-label="Larger" onClick={() => setZoom(Math.min(3, scale * ZOOM))} />
        <Button kind="quiet" icon="minus" aria-label="Smaller" onClick={() => setZoom(Math.max(0.2, scale / ZOOM))} />
        <Button kind="quiet" icon="extent" aria-label="Fit the graph" onClick={() => setZoom(null)} />
      </fieldset>
    </section>
  );
}

/** The scale at which the graph fits its frame. A graph that would be too small to read scrolls instead. */
function useFit(frame: React.RefObject<HTMLElement | null>, width: number, height: number): number {
  const [size, setSize] = useState<[number, number] | null>(null);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) setSize([element.clientWidth, element.clientHeight]); // a hidden frame has no size
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [frame]);
  if (!size || !width || !height) return 1;
  const across = (size[0] - PADDING) / width;
  const down = (size[1] - PADDING) / height;
  const most = matchMedia("(min-width: 2560px)").matches ? MOST_ON_LARGE : 1;
  return Math.min(most, across, Math.max(down, LEAST_FIT));
}

const Arrow = memo(function Arrow(edge: {
  path: string;
  label?: string | null;
  labelX: number;
  labelY: number;
  taken: boolean | null;
}) {
  const way = edge.taken === null ? "open" : edge.taken ? "taken" : "off";
  return (
    <g className={`arrow ${way}`} aria-hidden="true">
      <path d={edge.path} />
      {edge.label && (
        <text x={edge.labelX} y={edge.labelY + 3} textAnchor="middle">
          {cut(edge.label, 14)}
        </text>
      )}
    </g>
  );
});

const NodeShape = memo(function NodeShape(properties: {
  place: PlacedNode;
  node: DrawnNode;
  selected: boolean;
  entry: boolean;
  onSelect: (id: string) => void;
  onOpen: (id: string) => void;
}) {
  const { place, node, selected } = properties;
  const x = place.x - place.width / 2;
  const y = place.y - place.height / 2;
  const state = node.state ?? "none";
  return (
    <g className={`node st-${state} ${node.type} ${selected ? "selected" : ""}`} transform={`translate(${x} ${y})`}>
      <g className="shape" aria-hidden="true">
        {node.type === "start" || node.type === "end" ? (
          <Terminal place={place} state={state} />
        ) : (
          <Box place={place} node={node} />
        )}
      </g>
      {/* biome-ignore lint/a11y/useSemanticElements: SVG has no button */}
      <rect
        className="hit"
        width={place.width}
        height={place.height}
        role="button"
        tabIndex={properties.entry ? 0 : -1}
        data-node={place.id}
        aria-label={`${place.id}, ${node.spoken}`}
        aria-pressed={selected}
        onClick={() => properties.onOpen(place.id)}
        onFocus={() => properties.onSelect(place.id)}
        onKeyDown={(event) => {
          if (event.key !== " ") return;
          event.preventDefault();
          properties.onOpen(place.id);
        }}
      >
        <title>{place.id}</title>
      </rect>
    </g>
  );
});

function Terminal({ place, state }: { place: PlacedNode; state: string }) {
  const done = state === "completed";
  return (
    <>
      <circle className={done ? "terminal done" : "terminal"} cx={place.width / 2} cy={place.height / 2} r={6} />
      <text className="aside" x={place.width / 2 + 13} y={place.height / 2 + 4}>
        {place.id}
      </text>
    </>
  );
}

const SIGNS: Record<string, string> = { conditional: "M0 4 4 0 8 4 4 8z", fan_in: "M0 0 4 4 8 0M4 4v4" };

function Box({ place, node }: { place: PlacedNode; node: DrawnNode }) {
  const sign = SIGNS[node.type];
  const middle = place.height / 2;
  return (
    <>
      {node.type === "fan_out" && (
        <rect className="ghost" x={4} y={4} width={place.width} height={place.height} rx={4} />
      )}
      <rect className="box" width={place.width} height={place.height} rx={4} />
      {node.inside ?? (
        <>
          {node.state && (
            <svg x={9} y={middle - 7} width={14} height={14} aria-hidden="true">
              <Glyph state={node.state} />
            </svg>
          )}
          <text x={node.state ? 30 : 12} y={middle + 4}>
            {cut(place.id, node.aside ? 16 : 20)}
          </text>
          <text className="aside" x={place.width - (sign ? 26 : 10)} y={middle + 4} textAnchor="end">
            {node.aside}
          </text>
        </>
      )}
      {sign && <path className="sign" d={sign} transform={`translate(${place.width - 17} ${middle - 4})`} />}
    </>
  );
}

export function cut(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`;
}
