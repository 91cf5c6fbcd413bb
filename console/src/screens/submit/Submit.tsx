import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { api, ok } from "@/api/client";
import { Button } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { ErrorNote } from "@/components/ErrorNote";
import { plural } from "@/format/number";
import { useAddress } from "@/shell/address";
import { useKeys } from "@/shell/keys";
import { recall, remember } from "@/shell/remembered";
import { Screen } from "@/shell/Screen";
import { useSession } from "@/shell/session";
import { useToast } from "@/shell/toasts";
import { isRaster, sorted } from "@/uploads/bundles";
import { assembled, type UploadFile, uploadDesk } from "@/uploads/desk";
import { CollectionNote, CollectionOffer } from "./Collection";
import { type Draft, newDraft, newKey, obstacle, submissionOf, suggestedRefs } from "./draft";
import { draftStore, useDraft, useDrafts } from "./drafts";
import { DropZone, FileList, useDrop } from "./FileList";
import { Inspect, layerOf } from "./Inspect";
import { useInspection, useMembers, usePlatforms, useRehearsal, useSource } from "./queries";
import { SubmissionForm } from "./SubmissionForm";
import { Watch } from "./Watch";
import "./submit.css";

export default function Submit() {
  const { caller } = useSession();
  const toast = useToast();
  const uploads = useSyncExternalStore(uploadDesk.watch, uploadDesk.current);
  const files = useMemo(() => assembled(uploads), [uploads]);
  const drafts = useDrafts();
  const [address, setAddress] = useAddress<string>("file", "");
  const chosen = files.find((file) => file.key === address) ?? files[0];
  const platformId = caller.platform_id ?? recall("platform") ?? "ddh";
  const [offered, setOffered] = useState<string[]>([]);
  const take = useCallback(
    async (dropped: File[]) => {
      const { bundles, refused } = await sorted(dropped);
      for (const text of refused) toast({ text, bad: true });
      const keys = uploadDesk.add(bundles, platformId);
      setOffered(keys.filter((_, at) => isRaster(bundles[at]?.main.name ?? "")));
      if (keys[0]) setAddress(keys[0]);
    },
    [platformId, setAddress, toast],
  );
  const drop = useDrop((dropped) => void take(dropped));
  useFirstDrafts(files);
  useLeaving();
  const move = (step: number) => {
    const next = files[files.findIndex((file) => file.key === chosen?.key) + step];
    if (next) setAddress(next.key);
  };
  useKeys([
    { keys: "ArrowDown", label: "next file", run: () => move(1) },
    { keys: "ArrowUp", label: "file", sign: "ArrowUp ArrowDown", shown: files.length > 1, run: () => move(-1) },
  ]);
  const collected = new Set(Object.values(drafts).flatMap((draft) => draft.members));
  const own = files.filter((file) => !collected.has(file.key));
  const count = own.length;
  const open = own.filter((file) => !drafts[file.key]?.requestId).length;
  return (
    <Screen
      title="Submit"
      fills
      beside={<span className="small soft desk">Nothing is submitted before you say so.</span>}
      actions={
        files.length > 0 && (
          <span className="small dim">
            {plural(count, "submission")}, {open} not submitted
          </span>
        )
      }
      status={chosen ? [`for ${drafts[chosen.key]?.platformId ?? platformId}`] : []}
    >
      <div className={`submit ${drop.over ? "over" : ""}`} {...drop.handlers}>
        <aside className="files" aria-label="Files">
          <DropZone onFiles={(chosen) => void take(chosen)} />
          <CollectionOffer files={files} offered={offered} drafts={drafts} onEnd={() => setOffered([])} />
          <FileList files={files} drafts={drafts} chosen={chosen?.key ?? null} onChoose={setAddress} />
          <p className="small dim hint">
            An upload goes on where it stopped, also after you close the browser: drop the same file again.
          </p>
        </aside>
        {chosen ? (
          <OpenFile key={chosen.key} file={chosen} files={files} platformId={platformId} />
        ) : (
          <section className="inspect">
            <Empty icon="upload" title="No file yet">
              Drop files anywhere on this page. You see what is inside, and what would go wrong, before anything is
              submitted.
            </Empty>
          </section>
        )}
      </div>
    </Screen>
  );
}

/** Asks before a page is left whose uploads are under way. */
function useLeaving(): void {
  useEffect(() => {
    const leaving = (event: BeforeUnloadEvent) => {
      if (uploadDesk.busy) event.preventDefault();
    };
    addEventListener("beforeunload", leaving);
    return () => removeEventListener("beforeunload", leaving);
  }, []);
}

/** Takes a file off the list, with those beside it. The other rasters of its collection stay, unless they were submitted
 * with it. */
async function removeFile(file: UploadFile): Promise<void> {
  const draft = draftStore.current()[file.key];
  const gone = uploadDesk.remove(file.key);
  if (draft?.requestId) for (const member of draft.members) gone.push(...uploadDesk.remove(member));
  draftStore.set(file.key, null);
  if (draft?.requestId) return;
  for (const { uploadId } of gone) {
    if (uploadId)
      await ok(api.DELETE("/api/platform/uploads/{upload_id}", { params: { path: { upload_id: uploadId } } }));
  }
}

function OpenFile({ file, files, platformId }: { file: UploadFile; files: readonly UploadFile[]; platformId: string }) {
  const [draft, onDraft] = useDraft(file.key, platformId);
  const toast = useToast();
  const source = useSource(file);
  const platforms = usePlatforms();
  const remove = () => void removeFile(file).catch((error: unknown) => toast({ text: String(error), bad: true }));
  if (draft.requestId)
    return (
      <section className="inspect whole">
        <Watch
          requestId={draft.requestId}
          name={file.name}
          again={
            <Button
              kind="quiet"
              onClick={() => draftStore.set(file.key, { ...draft, requestId: null, idempotencyKey: newKey() })}
            >
              Submit the file again
            </Button>
          }
        />
        <div>
          <Button kind="quiet" icon="close" onClick={remove}>
            Take it off the list
          </Button>
        </div>
      </section>
    );
  if (source.error)
    return (
      <section className="inspect">
        <ErrorNote error={source.error} onRetry={() => void source.refetch()} />
        <div>
          <Button kind="quiet" icon="close" onClick={remove}>
            Take it off the list
          </Button>
        </div>
      </section>
    );
  return (
    <Filling
      {...{ file, files, draft, onDraft, source: source.data, platforms: platforms.data?.platforms ?? [], remove }}
    />
  );
}

/** A new draft has the identifiers that the name of the file suggests. */
function useFirstDrafts(files: readonly UploadFile[]): void {
  const platforms = usePlatforms().data?.platforms;
  useEffect(() => {
    if (!platforms) return;
    for (const file of files) {
      if (draftStore.current()[file.key]) continue;
      const platform = platforms.find((entry) => entry.platform_id === file.platformId);
      const refs = suggestedRefs(file.name, platform?.required_refs ?? []);
      draftStore.set(file.key, { ...newDraft(file.platformId), refs });
    }
  }, [files, platforms]);
}

interface FillingProps {
  file: UploadFile;
  files: readonly UploadFile[];
  draft: Draft;
  onDraft: (change: Partial<Draft>) => void;
  source: { container_name: string; file_name: string } | undefined;
  platforms: Parameters<typeof SubmissionForm>[0]["platforms"];
  remove: () => void;
}

function Filling({ file, files, draft, onDraft, source, platforms, remove }: FillingProps) {
  const inspection = useInspection(source, draft);
  const others = useMembers(files, draft.members);
  const dateField = useRef<HTMLInputElement>(null);
  const platform = platforms.find((entry) => entry.platform_id === draft.platformId);
  const required = platform?.required_refs ?? [];
  const complete = required.every((name) => draft.refs[name]?.trim());
  const rehearsal = useRehearsal(draft, inspection.data, source, others ?? [], complete);
  const known = rehearsal.data !== undefined && rehearsal.data.operation !== "created";
  const problems = inspection.isPlaceholderData ? undefined : inspection.data?.problems;
  const [problem, setProblem] = useState<unknown>(null);
  const client = useQueryClient();
  const submit = useMutation({
    mutationFn: () => {
      if (!source || !inspection.data || !others) throw new Error("the file has not arrived");
      return ok(api.POST("/api/platform/submit", { body: submissionOf(draft, inspection.data, source, others) }));
    },
    onSuccess: (accepted) => {
      remember("platform", draft.platformId);
      setProblem(null);
      onDraft({ requestId: accepted.request_id });
      void client.invalidateQueries({ queryKey: ["assets"] });
      client.removeQueries({ queryKey: ["rehearse"] }); // the identifiers have an asset now
    },
    onError: (error) => {
      setProblem(error);
      // Another body needs another key: the gateway keeps what the first one said.
      onDraft({ idempotencyKey: newKey() });
    },
  });
  const inTheWay =
    file.status !== "arrived"
      ? "The file has not arrived yet."
      : others === undefined
        ? "The other rasters of the collection have not arrived yet."
        : obstacle(draft, required, problems, known);
  const ready = inTheWay === null && !submit.isPending;
  const go = () => ready && submit.mutate();
  useKeys([
    { keys: "1", label: "first remedy", shown: true, run: firstRemedy },
    { keys: "Ctrl+Enter", label: "submit", shown: true, run: go },
  ]);
  const columns = (inspection.data && layerOf(inspection.data, draft)?.columns?.map((column) => column.source)) ?? [];
  return (
    <>
      <section className="inspect" aria-label={file.name}>
        <CollectionNote file={file} files={files} draft={draft} onDraft={onDraft} />
        {file.status === "arrived" ? (
          <Inspect
            name={file.name}
            draft={draft}
            query={inspection}
            onDraft={onDraft}
            onReplace={remove}
            onTime={() => dateField.current?.focus()}
          />
        ) : (
          <Empty icon="upload" title={`${file.name} is on its way`}>
            You can fill in the form meanwhile. What is inside is shown when the last byte has arrived.
          </Empty>
        )}
        <div>
          <Button kind="quiet" icon="close" onClick={remove}>
            Remove the file
          </Button>
        </div>
      </section>
      <aside className="form" aria-label="Submission">
        <div className="scroll">
          <SubmissionForm
            {...{ draft, onDraft, platforms, rehearsal, problem, dateField, columns }}
            inspection={inspection.data}
          />
        </div>
        <div className="act">
          <Button kind="primary" size="large" disabled={!ready} onClick={go} hint="Ctrl Enter">
            {submit.isPending ? "Submitting" : "Submit"}
          </Button>
          <span className="small soft" role="status">
            {inTheWay ??
              (known
                ? `Opens revision ${rehearsal.data?.revision}, which waits for review.`
                : "Starts at once, and waits for review.")}
          </span>
        </div>
      </aside>
    </>
  );
}

/** Presses the first remedy, or leads into its field. */
function firstRemedy(): void {
  const remedy = document.querySelector<HTMLElement>('[data-remedy="first"]');
  if (remedy instanceof HTMLButtonElement) remedy.click();
  else remedy?.focus();
}
