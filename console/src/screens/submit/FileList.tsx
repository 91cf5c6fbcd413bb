/** The files at the left: drop zone, progress, and what each needs. */

import { type DragEvent, useRef, useState } from "react";
import { wording } from "@/api/problem";
import { Button } from "@/components/Button";
import { Icon } from "@/components/Icon";
import { Glyph } from "@/components/states";
import { bytes, percent } from "@/format/number";
import { duration } from "@/format/time";
import { type UploadFile, uploadDesk } from "@/uploads/desk";
import type { Draft } from "./draft";
import { useInspection, useSource, useStanding } from "./queries";

export function DropZone({ onFiles }: { onFiles: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div className="drop">
      <Icon name="upload" />
      <span>
        <span className="strong">Drop files here</span> or{" "}
        <button type="button" className="link accent" onClick={() => input.current?.click()}>
          choose
        </button>
      </span>
      <span className="small dim">
        GeoPackage, Shapefile, GeoJSON, FlatGeobuf, GeoParquet, KML, CSV, GeoTIFF. What belongs together, dropped
        together, is one submission.
      </span>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files to upload"
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
    </div>
  );
}

/** Handlers that let files be dropped anywhere on an element. */
export function useDrop(onFiles: (files: File[]) => void) {
  const [over, setOver] = useState(false);
  const holdsFiles = (event: DragEvent) => event.dataTransfer.types.includes("Files");
  return {
    over,
    handlers: {
      onDragOver: (event: DragEvent) => {
        if (!holdsFiles(event)) return;
        event.preventDefault();
        setOver(true);
      },
      onDragLeave: (event: DragEvent) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      },
      onDrop: (event: DragEvent) => {
        if (!holdsFiles(event)) return;
        event.preventDefault();
        setOver(false);
        onFiles([...event.dataTransfer.files]);
      },
    },
  };
}

export function FileList(properties: {
  files: readonly UploadFile[];
  drafts: Record<string, Draft>;
  chosen: string | null;
  onChoose: (key: string) => void;
}) {
  const collected = new Set(Object.values(properties.drafts).flatMap((draft) => draft.members));
  const isShown = (file: UploadFile) => !collected.has(file.key);
  return (
    <ol>
      {properties.files.filter(isShown).map((file) => (
        <li key={file.key} aria-current={file.key === properties.chosen || undefined}>
          <button type="button" className="line pick" onClick={() => properties.onChoose(file.key)}>
            <span className="strong cut grow">{file.name}</span>
            <span className="small dim">{bytes(file.size)}</span>
          </button>
          <Company file={file} all={properties.files} draft={properties.drafts[file.key]} />
          <Standing file={file} draft={properties.drafts[file.key]} />
        </li>
      ))}
    </ol>
  );
}

/** What is submitted with the file. */
function Company({ file, all, draft }: { file: UploadFile; all: readonly UploadFile[]; draft: Draft | undefined }) {
  const beside = uploadDesk.bundle(file.key).filter((entry) => entry.mainKey !== null);
  const members = all.filter((entry) => draft?.members.includes(entry.key));
  return (
    <>
      {beside.length > 0 && <span className="small soft">with {beside.map((entry) => entry.name).join(", ")}</span>}
      {members.length > 0 && (
        <span className="small soft">one collection with {members.map((entry) => entry.name).join(", ")}</span>
      )}
    </>
  );
}

function Standing({ file, draft }: { file: UploadFile; draft: Draft | undefined }) {
  if (file.status === "arrived")
    return draft?.requestId ? <Submitted draft={draft} /> : <Arrived file={file} draft={draft} />;
  if (file.status === "failed" && file.problem) {
    const { happened, remedy } = wording(file.problem);
    return (
      <span className="stack tight small bad-ink" role="alert">
        <span>{happened}</span>
        <span className="line">
          <span className="grow soft">{remedy}</span>
          <Button kind="quiet" icon="retry" onClick={() => uploadDesk.resume(file.key)}>
            Again
          </Button>
        </span>
      </span>
    );
  }
  return <Sending file={file} />;
}

function Sending({ file }: { file: UploadFile }) {
  const share = file.sent < file.size ? Math.min(file.sent / file.size, 0.99) : 1;
  const left = file.speed ? (file.size - file.sent) / file.speed : null;
  const words = {
    waiting: "waits for the others",
    paused: `paused at ${percent(share)}`,
    missing: `${percent(share)} arrived. Drop the same file again.`,
  };
  const told = file.status === "sending" ? sendingWords(share, file.speed, left) : words[file.status as "paused"];
  return (
    <>
      <span
        className="progress"
        role="progressbar"
        aria-label={`Upload of ${file.name}`}
        aria-valuenow={Math.round(share * 100)}
      >
        <i style={{ width: `${share * 100}%` }} />
      </span>
      <span className="line small soft">
        <span className="grow">{told}</span>
        {file.status === "sending" && (
          <button type="button" className="link accent" onClick={() => uploadDesk.pause(file.key)}>
            Pause
          </button>
        )}
        {file.status === "paused" && (
          <button type="button" className="link accent" onClick={() => uploadDesk.resume(file.key)}>
            Resume
          </button>
        )}
      </span>
    </>
  );
}

export function sendingWords(share: number, speed: number | null, left: number | null): string {
  if (share >= 1) return "sent, being checked";
  const parts = [percent(share), speed ? `${bytes(speed)}/s` : "", left ? `${duration(Math.ceil(left))} left` : ""];
  return parts.filter(Boolean).join(", ");
}

function Arrived({ file, draft }: { file: UploadFile; draft: Draft | undefined }) {
  const source = useSource(file);
  const inspection = useInspection(draft && source.data, draft ?? PLAIN);
  if (source.error || inspection.error) return <span className="small bad-ink">cannot be looked into</span>;
  if (!inspection.data) return <span className="small dim">arrived, being looked into</span>;
  const errors = inspection.data.problems?.filter((problem) => problem.severity === "error").length ?? 0;
  const remarks = (inspection.data.problems?.length ?? 0) - errors;
  const remarkWords = remarks > 0 ? `, ${remarks} remark${remarks > 1 ? "s" : ""}` : "";
  if (errors > 0)
    return (
      <span className="line small bad-ink">
        <Glyph state="failed" />
        {errors} problem{errors > 1 ? "s" : ""}
        {remarkWords}
      </span>
    );
  return (
    <span className="line small soft">
      <Glyph state="completed" />
      ready{remarkWords}
    </span>
  );
}

const PLAIN = { platformId: "ddh", options: {}, taken: "", workflowId: null } as unknown as Draft;

function Submitted({ draft }: { draft: Draft }) {
  const standing = useStanding(draft.requestId);
  const status = standing.data?.status ?? "queued";
  return (
    <span className="line small soft">
      <Glyph state={status} />
      {status === "completed" ? "published, waits for review" : status}
    </span>
  );
}
