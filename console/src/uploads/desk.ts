/** The files that this page uploads. The desk outlives its screen, so uploads go on while somebody looks elsewhere. What it
 * has is remembered by the browser, without the bytes: after a reload, the same file continues where it stopped. */

import { type ApiProblem, asProblem } from "@/api/problem";
import { recall, remember } from "@/shell/remembered";
import type { Bundle } from "./bundles";
import { sendFile } from "./tus";

export type UploadStatus = "waiting" | "sending" | "paused" | "missing" | "arrived" | "failed";

export interface UploadFile {
  /** Name, size and time of change: the same file has the same key, also after a reload. */
  key: string;
  name: string;
  size: number;
  platformId: string;
  /** The folder that it shares with the files that belong to it, or null. */
  folder: string | null;
  /** The key of the file that this one describes, or null. */
  mainKey: string | null;
  uploadId: string | null;
  status: UploadStatus;
  sent: number;
  /** Bytes a second, over the last seconds. */
  speed: number | null;
  problem: ApiProblem | null;
}

const SENDING_MOST = 2;
const SPEED_MILLISECONDS = 4_000;
const REMEMBERED = "uploads";
const REMEMBERED_MOST = 50;

export function keyOf(file: { name: string; size: number; lastModified: number }): string {
  return `${file.name}|${file.size}|${file.lastModified}`;
}

export class UploadDesk {
  private files: readonly UploadFile[] = remembered();
  private readonly bytes = new Map<string, File>();
  private readonly aborts = new Map<string, AbortController>();
  private readonly watchers = new Set<() => void>();

  readonly watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  readonly current = (): readonly UploadFile[] => this.files;

  get busy(): boolean {
    return this.files.some((file) => file.status === "sending" || file.status === "waiting");
  }

  /** Takes files in. One that was here before continues. Returns the keys of the main files. */
  add(bundles: readonly Bundle[], platformId: string): string[] {
    for (const { main, companions } of bundles) {
      const mainKey = keyOf(main);
      const folder =
        this.files.find((file) => file.key === mainKey)?.folder ?? (companions.length > 0 ? newFolder() : null);
      this.take(main, { platformId, folder, mainKey: null });
      for (const companion of companions) this.take(companion, { platformId, folder, mainKey });
    }
    this.next();
    return bundles.map((bundle) => keyOf(bundle.main));
  }

  private take(file: File, place: Pick<UploadFile, "platformId" | "folder" | "mainKey">): void {
    const key = keyOf(file);
    this.bytes.set(key, file);
    const known = this.files.find((entry) => entry.key === key);
    if (!known) this.files = [...this.files, { ...newFile(key, file), ...place }];
    else if (known.status !== "arrived" && known.status !== "sending") this.patch(key, { status: "waiting" });
  }

  /** The files of a bundle, by the key of its main file. */
  bundle(key: string): UploadFile[] {
    return this.files.filter((file) => file.key === key || file.mainKey === key);
  }

  pause(key: string): void {
    for (const file of this.bundle(key).filter((entry) => entry.status !== "arrived")) {
      this.patch(file.key, { status: "paused", speed: null });
      this.aborts.get(file.key)?.abort(new DOMException("paused", "AbortError"));
    }
    this.next();
  }

  /** Continues. A file whose bytes this page does not have must be chosen again. */
  resume(key: string): void {
    for (const file of this.bundle(key).filter((entry) => entry.status !== "arrived"))
      this.patch(file.key, { status: this.bytes.has(file.key) ? "waiting" : "missing", problem: null });
    this.next();
  }

  /** Takes a file and its companions off the list, and returns them. Their uploads on the gateway are removed by the
   * caller, or expire. */
  remove(key: string): UploadFile[] {
    const gone = this.bundle(key);
    for (const file of gone) {
      this.aborts.get(file.key)?.abort(new DOMException("removed", "AbortError"));
      this.bytes.delete(file.key);
    }
    this.files = this.files.filter((file) => !gone.includes(file));
    this.tell();
    this.next();
    return gone;
  }

  private next(): void {
    const sending = this.files.filter((file) => file.status === "sending").length;
    const waiting = this.files.filter((file) => file.status === "waiting");
    for (const file of waiting.slice(0, Math.max(0, SENDING_MOST - sending))) void this.send(file);
  }

  private async send(file: UploadFile): Promise<void> {
    const { key } = file;
    const bytes = this.bytes.get(key);
    if (!bytes) return this.patch(key, { status: "missing" });
    const abort = new AbortController();
    this.aborts.set(key, abort);
    this.patch(key, { status: "sending", problem: null });
    const speed = new SpeedMeter();
    try {
      await sendFile({
        file: bytes,
        metadata: {
          filename: file.name,
          platform_id: file.platformId,
          ...(file.folder ? { folder: file.folder } : {}),
        },
        uploadId: file.uploadId,
        signal: abort.signal,
        onBegun: (uploadId) => this.patch(key, { uploadId }),
        onProgress: (sent) => this.patch(key, { sent, speed: speed.at(sent, performance.now()) }),
      });
      this.patch(key, { status: "arrived", sent: file.size, speed: null });
    } catch (error) {
      if (!abort.signal.aborted) this.patch(key, { status: "failed", problem: asProblem(error), speed: null });
    } finally {
      if (this.aborts.get(key) === abort) this.aborts.delete(key);
    }
    this.next();
  }

  private patch(key: string, change: Partial<UploadFile>): void {
    this.files = this.files.map((file) => (file.key === key ? { ...file, ...change } : file));
    this.tell("status" in change || "uploadId" in change);
  }

  private tell(lasting = true): void {
    if (lasting) keep(this.files);
    for (const watcher of this.watchers) watcher();
  }
}

export const uploadDesk = new UploadDesk();

/** The speed over the last seconds. */
export class SpeedMeter {
  private marks: { sent: number; at: number }[] = [];

  at(sent: number, now: number): number | null {
    this.marks = [...this.marks.filter((mark) => now - mark.at < SPEED_MILLISECONDS), { sent, at: now }];
    const first = this.marks[0];
    if (!first || now - first.at < 500) return null;
    return Math.max(0, ((sent - first.sent) / (now - first.at)) * 1000);
  }
}

function newFile(key: string, { name, size }: File): Omit<UploadFile, "platformId" | "folder" | "mainKey"> {
  return { key, name, size, uploadId: null, status: "waiting", sent: 0, speed: null, problem: null };
}

function newFolder(): string {
  const bytes = [...crypto.getRandomValues(new Uint8Array(12))];
  return `together-${bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const PROGRESS: readonly UploadStatus[] = ["failed", "missing", "paused", "sending", "waiting", "arrived"];

/** The main files, each with the size and the standing of all that belongs to it: it has arrived when all have. */
export function assembled(files: readonly UploadFile[]): UploadFile[] {
  return files
    .filter((file) => file.mainKey === null)
    .map((main) => {
      const all = files.filter((file) => file.key === main.key || file.mainKey === main.key);
      const least = all.reduce((one, other) =>
        PROGRESS.indexOf(other.status) < PROGRESS.indexOf(one.status) ? other : one,
      );
      const sum = (of: (file: UploadFile) => number) => all.reduce((total, file) => total + of(file), 0);
      return {
        ...main,
        status: least.status,
        problem: least.problem,
        size: sum((file) => file.size),
        sent: sum((file) => file.sent),
        speed: all.some((file) => file.speed !== null) ? sum((file) => file.speed ?? 0) : null,
      };
    });
}

/** The list as it was before a reload. The bytes of what was not sent are gone with the page. */
export function restored(text: string | null): UploadFile[] {
  try {
    const files = JSON.parse(text ?? "[]") as UploadFile[];
    // A list of an earlier release has no folders.
    const whole = files.map((file) => ({ ...file, folder: file.folder ?? null, mainKey: file.mainKey ?? null }));
    return whole.map((file) => (file.status === "arrived" ? file : { ...file, status: "missing", problem: null }));
  } catch {
    return [];
  }
}

function remembered(): UploadFile[] {
  return restored(recall(REMEMBERED));
}

function keep(files: readonly UploadFile[]): void {
  const lasting = files.map((file) => ({ ...file, problem: null, speed: null }));
  remember(REMEMBERED, JSON.stringify(lasting.slice(-REMEMBERED_MOST)));
}
