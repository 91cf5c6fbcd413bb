/** Several rasters as one asset: the offer after they were dropped together, and the note on what they have become. */

import { Button } from "@/components/Button";
import { plural } from "@/format/number";
import type { UploadFile } from "@/uploads/desk";
import { type Draft, newDraft } from "./draft";
import { draftStore } from "./drafts";
import { useInspection, useSource } from "./queries";

interface OfferProps {
  files: readonly UploadFile[];
  /** The keys of the rasters that were dropped together. */
  offered: readonly string[];
  drafts: Record<string, Draft>;
  onEnd: () => void;
}

export function CollectionOffer({ files, offered, drafts, onEnd }: OfferProps) {
  const rasters = offered.filter((key) => files.some((file) => file.key === key) && !drafts[key]?.requestId);
  const [first, ...others] = rasters;
  if (first === undefined || others.length === 0) return null;
  const platformId = files.find((file) => file.key === first)?.platformId ?? "";
  const collect = () => {
    draftStore.set(first, { ...(drafts[first] ?? newDraft(platformId)), members: others });
    onEnd();
  };
  return (
    <div className="offer" role="status">
      <span>
        {plural(rasters.length, "raster")} were dropped together. Each becomes an asset of its own, unless you make them
        one.
      </span>
      <span className="line wrap">
        <Button onClick={collect}>Make one collection</Button>
        <Button kind="quiet" onClick={onEnd}>
          Keep them apart
        </Button>
      </span>
    </div>
  );
}

interface NoteProps {
  file: UploadFile;
  files: readonly UploadFile[];
  draft: Draft;
  onDraft: (change: Partial<Draft>) => void;
}

/** Says what the collection has in it. */
export function CollectionNote({ file, files, draft, onDraft }: NoteProps) {
  const members = files.filter((entry) => draft.members.includes(entry.key));
  if (members.length === 0) return null;
  return (
    <section className="collection" aria-label="Collection">
      <div className="line wrap">
        <span className="strong grow">One asset of {plural(members.length + 1, "raster")}</span>
        <Button kind="quiet" onClick={() => onDraft({ members: [] })}>
          Submit each on its own
        </Button>
      </div>
      <ol>
        {[file, ...members].map((entry) => (
          <Member key={entry.key} file={entry} draft={draft} />
        ))}
      </ol>
      <span className="small soft">Below is the first. All get the same options, and are approved together.</span>
    </section>
  );
}

function Member({ file, draft }: { file: UploadFile; draft: Draft }) {
  const source = useSource(file);
  const inspection = useInspection(source.data, draft);
  const errors = inspection.data?.problems?.filter((problem) => problem.severity === "error") ?? [];
  const words = errors.map((problem) => problem.code.replaceAll("_", " ")).join(", ");
  return (
    <li className="line small">
      <span className="cut grow">{file.name}</span>
      <span className={words ? "bad-ink" : "dim"}>
        {words || (inspection.error ? "cannot be looked into" : inspection.data ? "ready" : "on its way")}
      </span>
    </li>
  );
}
