/** The file in the middle: what it is, its problems, where it lies, what is in it. */

import type { InspectionProblem } from "@/api/schema";
import { ErrorNote } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Loading } from "@/components/Loading";
import { count } from "@/format/number";
import { ContentFacts, ContentTable, ExtentMap } from "./Contents";
import type { Draft, Options, Solution } from "./draft";
import { Problems } from "./Problems";
import type { FileContent, LayerContent, useInspection } from "./queries";

interface InspectProps {
  name: string;
  draft: Draft;
  query: ReturnType<typeof useInspection>;
  onDraft: (change: Partial<Draft>) => void;
  onReplace: () => void;
  onTime: () => void;
}

export function Inspect(properties: InspectProps) {
  const { query, draft, onDraft } = properties;
  if (query.error && !query.data) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />;
  if (!query.data) return <Loading lines={8} />;
  const inspection = query.data;
  const layer = layerOf(inspection, draft);
  const solve = (problem: InspectionProblem, options: Options) => {
    const others = draft.solutions.filter((solution) => solution.code !== problem.code);
    const solution = { code: problem.code, message: problem.message, options };
    onDraft({ options: { ...draft.options, ...options }, solutions: [...others, solution] });
  };
  const undo = (solution: Solution) => {
    const names = Object.keys(solution.options);
    const options = Object.entries(draft.options).filter(([name]) => !names.includes(name));
    const solutions = draft.solutions.filter((entry) => entry.code !== solution.code);
    onDraft({ options: Object.fromEntries(options), solutions });
  };
  return (
    <>
      <div className="line wrap">
        <h2 className="file-title">{properties.name}</h2>
        {inspection.format && <span className="tag">{inspection.format}</span>}
        <span className="grow small dim" role="status">
          {query.isFetching ? "Looking again …" : ""}
        </span>
        <LayerChoice
          inspection={inspection}
          layer={layer}
          onChoose={(name) => onDraft({ options: { ...draft.options, layer: name } })}
        />
      </div>
      <Problems
        problems={inspection.problems ?? []}
        solutions={draft.solutions}
        fileName={inspection.file_name}
        onSolve={solve}
        onUndo={undo}
        onReplace={properties.onReplace}
        onTime={properties.onTime}
      />
      <ContentFacts inspection={inspection} layer={layer} />
      <ExtentMap
        inspection={inspection}
        supposed={inspection.crs?.known_from === "option" ? inspection.crs.code : null}
      />
      <ContentTable inspection={inspection} layer={layer} />
    </>
  );
}

export function layerOf(inspection: FileContent, draft: Draft): LayerContent | undefined {
  const chosen = inspection.layers?.find((layer) => layer.name === draft.options.layer);
  return chosen ?? inspection.layers?.[0];
}

function LayerChoice(properties: {
  inspection: FileContent;
  layer: LayerContent | undefined;
  onChoose: (name: string) => void;
}) {
  const layers = properties.inspection.layers ?? [];
  if (layers.length < 2) return null;
  return (
    <div className="layer-choice">
      <Field label="Layer">
        {(attributes) => (
          <select
            className="input"
            {...attributes}
            value={properties.layer?.name ?? ""}
            onChange={(event) => properties.onChoose(event.target.value)}
          >
            {layers.map((layer) => (
              <option key={layer.name} value={layer.name ?? ""}>
                {layer.name} {layer.rows === null ? "" : `(${count(layer.rows)} features)`}
              </option>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}
