/** The form at the right: platform, identifiers, words for people, options, clearance. */

import { type RefObject, useState } from "react";
import { ApiProblem, asProblem } from "@/api/problem";
import { Segments } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { InputControl } from "@/components/inputs/InputControl";
import { inputFields } from "@/components/inputs/inputs";
import { Glyph } from "@/components/states";
import { useSession } from "@/shell/session";
import { type Clearance, type Draft, timesOf } from "./draft";
import { type FileContent, type useRehearsal, useWorkflow } from "./queries";

const LICENCES = ["CC-BY-4.0", "CC0-1.0", "CC-BY-SA-4.0", "ODbL-1.0", "proprietary", "other"];
/** Set by geomill for each submission, or by a field of this form. */
const SET_ELSEWHERE = new Set([
  ...["asset_id", "revision", "request_id", "platform_id", "platform_refs", "data_type", "container_name"],
  ...["file_name", "blob_name", "file_names", "table_name", "blob_prefix", "stac_item_id", "stac_collection_id"],
  ...["datetime", "start_datetime", "end_datetime", "layer"],
]);
const COMMON = ["target_crs", "source_crs", "id_column", "output_tier", "raster_type", "geoparquet", "pmtiles"];

export interface PlatformFields {
  platform_id: string;
  display_name: string;
  description?: string | null;
  required_refs?: string[];
  optional_refs?: string[];
}

interface FormProps {
  draft: Draft;
  onDraft: (change: Partial<Draft>) => void;
  platforms: readonly PlatformFields[];
  inspection: FileContent | undefined;
  columns: readonly string[];
  rehearsal: ReturnType<typeof useRehearsal>;
  problem: unknown;
  dateField: RefObject<HTMLInputElement | null>;
}

export function SubmissionForm(properties: FormProps) {
  const { draft, onDraft } = properties;
  return (
    <>
      {properties.problem ? <ErrorLine error={properties.problem} /> : null}
      <Identity {...properties} />
      <Words {...properties} />
      <hr className="rule" />
      <WorkflowOptions {...properties} />
      <div className="field">
        <span className="label">Clearance that you propose</span>
        <Segments<Clearance | "none">
          label="Clearance that you propose"
          options={[
            { value: "none", label: "none" },
            { value: "ouo", label: <Sign state="ouo">official use</Sign> },
            { value: "public", label: <Sign state="public">public</Sign> },
          ]}
          value={draft.clearance ?? "none"}
          onChange={(value) => onDraft({ clearance: value === "none" ? null : value })}
        />
        <span className="help">A reviewer decides.</span>
      </div>
    </>
  );
}

function Sign({ state, children }: { state: string; children: string }) {
  return (
    <span className="state">
      <Glyph state={state} />
      {children}
    </span>
  );
}

function Identity({ draft, onDraft, platforms, rehearsal, problem }: FormProps) {
  const { caller } = useSession();
  const platform = platforms.find((entry) => entry.platform_id === draft.platformId);
  const mine = caller.platform_id ? platforms.filter((entry) => entry.platform_id === caller.platform_id) : platforms;
  const names = [...(platform?.required_refs ?? []), ...(platform?.optional_refs ?? [])];
  const refused = problem instanceof ApiProblem ? problem : null;
  return (
    <>
      <Field label="Platform" help={platform?.description}>
        {(attributes) => (
          <select
            className="input"
            {...attributes}
            disabled={mine.length < 2}
            value={draft.platformId}
            onChange={(event) => onDraft({ platformId: event.target.value, refs: {}, overwrite: false })}
          >
            {mine.map((entry) => (
              <option key={entry.platform_id} value={entry.platform_id}>
                {entry.platform_id}: {entry.display_name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <div className="refs">
        {names.map((name) => (
          <Field
            key={name}
            label={<code>{name}</code>}
            aside={platform?.required_refs?.includes(name) ? undefined : <span className="dim">optional</span>}
            wrong={refused?.of(name)}
          >
            {(attributes) => (
              <input
                className="input mono"
                {...attributes}
                maxLength={200}
                autoComplete="off"
                value={draft.refs[name] ?? ""}
                onChange={(event) => onDraft({ refs: { ...draft.refs, [name]: event.target.value } })}
              />
            )}
          </Field>
        ))}
      </div>
      <Names draft={draft} onDraft={onDraft} rehearsal={rehearsal} />
    </>
  );
}

/** What the submission becomes: names, and whether the identifiers are known. */
function Names({ draft, onDraft, rehearsal }: Pick<FormProps, "draft" | "onDraft" | "rehearsal">) {
  if (rehearsal.error) {
    const problem = asProblem(rehearsal.error);
    return <p className="small bad-ink">{problem.errors[0]?.message ?? problem.detail}</p>;
  }
  const { data } = rehearsal;
  if (!data) return <p className="small dim">These identify the data for good. With another revision they stay.</p>;
  const would = data.would ?? {};
  const inputs = (would.input_params ?? {}) as Record<string, unknown>;
  const table = text(inputs.table_name);
  const folder = text(would.blob_prefix);
  const known = data.operation !== "created";
  return (
    <div className="becomes small">
      <span className="dim">becomes</span>
      <span className="strong mono cut">{text(would.stac_item_id) ?? data.asset_id}</span>
      {table && <span className="dim">table</span>}
      {table && <span className="mono cut">geo.{table}</span>}
      {!table && folder && <span className="dim">folder</span>}
      {!table && folder && <span className="mono cut">{folder}</span>}
      <span className="dim">these identifiers</span>
      <span>{known ? `have an asset: this is revision ${data.revision}` : "are new: revision 1"}</span>
      {known && (
        <label className="check whole">
          <input
            type="checkbox"
            checked={draft.overwrite}
            onChange={(event) => onDraft({ overwrite: event.target.checked })}
          />
          <span>Make it the next revision, {data.revision}. A reviewer compares it with the one before.</span>
        </label>
      )}
    </div>
  );
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function Words({ draft, onDraft, dateField, problem }: FormProps) {
  const [more, setMore] = useState(Boolean(draft.keywords || draft.attribution));
  const refused = problem instanceof ApiProblem ? problem : null;
  return (
    <>
      <Field label="Title" wrong={refused?.of("title")}>
        {(attributes) => (
          <input
            className="input"
            {...attributes}
            maxLength={200}
            value={draft.title}
            onChange={(event) => onDraft({ title: event.target.value })}
          />
        )}
      </Field>
      <Field label="Description" aside={<span className="dim">optional</span>} wrong={refused?.of("description")}>
        {(attributes) => (
          <textarea
            className="input"
            {...attributes}
            rows={2}
            maxLength={5000}
            value={draft.description}
            onChange={(event) => onDraft({ description: event.target.value })}
          />
        )}
      </Field>
      <div className="refs">
        <Field
          label="When the data was taken"
          help="A date, or two with / between them."
          wrong={timesOf(draft.taken) === null ? "Write 2026-06-30, or 2026-01-01/2026-06-30" : undefined}
        >
          {(attributes) => (
            <input
              ref={dateField}
              className="input"
              {...attributes}
              placeholder="2026-06-30"
              value={draft.taken}
              onChange={(event) => onDraft({ taken: event.target.value })}
            />
          )}
        </Field>
        <Field label="Licence" help="As SPDX writes it." wrong={refused?.of("license")}>
          {(attributes) => (
            <input
              className="input"
              {...attributes}
              list="licences"
              maxLength={100}
              value={draft.license}
              onChange={(event) => onDraft({ license: event.target.value })}
            />
          )}
        </Field>
        <datalist id="licences">
          {LICENCES.map((licence) => (
            <option key={licence} value={licence} />
          ))}
        </datalist>
      </div>
      {more ? (
        <>
          <Field label="Keywords" help="With commas between them." wrong={refused?.of("keywords")}>
            {(attributes) => (
              <input
                className="input"
                {...attributes}
                value={draft.keywords}
                onChange={(event) => onDraft({ keywords: event.target.value })}
              />
            )}
          </Field>
          <Field label="Attribution" help="The line that maps show beside the data." wrong={refused?.of("attribution")}>
            {(attributes) => (
              <input
                className="input"
                {...attributes}
                maxLength={500}
                value={draft.attribution}
                onChange={(event) => onDraft({ attribution: event.target.value })}
              />
            )}
          </Field>
        </>
      ) : (
        <button type="button" className="link accent small" onClick={() => setMore(true)}>
          Keywords and attribution
        </button>
      )}
    </>
  );
}

function WorkflowOptions({ draft, onDraft, inspection, columns, problem }: FormProps) {
  const workflowId = draft.workflowId ?? inspection?.workflow_id;
  const workflow = useWorkflow(workflowId);
  const [all, setAll] = useState(false);
  const refused = problem instanceof ApiProblem ? problem : null;
  if (!workflow.data) return null;
  const fields = inputFields(workflow.data.inputs, SET_ELSEWHERE);
  const isCommon = (name: string) => COMMON.includes(name) || draft.options[name] !== undefined;
  const shown = all ? fields : fields.filter((field) => isCommon(field.name));
  const flags = shown.filter((field) => field.kind === "flag");
  const control = (field: (typeof fields)[number]) => (
    <InputControl
      key={field.name}
      field={all ? field : { ...field, help: field.kind === "flag" ? field.help : null }}
      value={draft.options[field.name]}
      wrong={refused?.of(field.name)}
      suggestions={field.name.endsWith("_column") ? columns : undefined}
      onChange={(value) => onDraft({ options: { ...draft.options, [field.name]: value } })}
    />
  );
  return (
    <>
      <h2>{workflow.data.name}</h2>
      <div className="refs">{shown.filter((field) => field.kind !== "flag").map(control)}</div>
      {flags.length > 0 && <div className="stack tight">{flags.map(control)}</div>}
      {fields.length > shown.length && (
        <button type="button" className="link accent small" onClick={() => setAll(true)}>
          {fields.length - shown.length} more options
        </button>
      )}
    </>
  );
}
