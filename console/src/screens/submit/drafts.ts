/** The drafts of this browser, by the key of their file. They survive a reload, and go when the file goes. */

import { useCallback, useSyncExternalStore } from "react";
import { recall, remember } from "@/shell/remembered";
import { type Draft, newDraft } from "./draft";

const REMEMBERED = "drafts";

class DraftStore {
  private drafts: Record<string, Draft> = read();
  private readonly watchers = new Set<() => void>();

  readonly watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  readonly current = (): Record<string, Draft> => this.drafts;

  set(key: string, draft: Draft | null): void {
    const { [key]: _, ...others } = this.drafts;
    this.drafts = draft ? { ...others, [key]: draft } : others;
    remember(REMEMBERED, JSON.stringify(this.drafts));
    for (const watcher of this.watchers) watcher();
  }
}

function read(): Record<string, Draft> {
  try {
    const drafts = JSON.parse(recall(REMEMBERED) ?? "{}") as Record<string, Partial<Draft>>;
    // A draft of an earlier release may lack fields.
    return Object.fromEntries(Object.entries(drafts).map(([key, draft]) => [key, { ...newDraft(""), ...draft }]));
  } catch {
    return {};
  }
}

export const draftStore = new DraftStore();

export function useDrafts(): Record<string, Draft> {
  return useSyncExternalStore(draftStore.watch, draftStore.current);
}

/** The draft of a file, and a function that changes some of its fields. */
export function useDraft(key: string, platformId: string): [Draft, (change: Partial<Draft>) => void] {
  const draft = useDrafts()[key] ?? newDraft(platformId);
  const change = useCallback(
    (fields: Partial<Draft>) => {
      const current = draftStore.current()[key] ?? newDraft(platformId);
      draftStore.set(key, { ...current, ...fields });
    },
    [key, platformId],
  );
  return [draft, change];
}
