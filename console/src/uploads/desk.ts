/** The files that this page uploads. The desk outlives its screen, so uploads go on while somebody looks elsewhere. What it
 * has is remembered by the browser, without the bytes: after a reload, the same file continues where it stopped. */

import { type ApiProblem, asProblem } from "@/api/problem";
import { recall, remember } from "@/shell/remembered";
import { sendFile } from "./tus";

export type UploadStatus = "waiting" | "sending" | "paused" | "missing" | "arrived" | "failed";

export interface UploadFile {
  /** Name, size and time of change: the same file has the same key, also after a reload. */
  key: string;
  name: string;
  size: number;
  platformId: string;
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

  /** Takes files in. One that was here before continues. Returns the key of the first. */
  add(files: readonly File[], platformId: string): string | null {
    for (const file of files) {
      const key = keyOf(file);
      this.bytes.set(key, file);
      const known = this.files.find((entry) => entry.key === key);
      if (!known) this.files = [...this.files, newFile(key, file, platformId)];
      else if (known.status !== "arrived" && known.status !== "sending") this.patch(key, { status: "waiting" });
    }
    this.next();
    return files[0] ? keyOf(files[0]) : null;
  }

  pause(key: string): void {
    this.patch(key, { status: "paused", speed: null });
    this.aborts.get(key)?.abort(new DOMException("paused", "AbortError"));
    this.next();
  }

  /** Continues. A file whose bytes this page does not have must be chosen again. */
  resume(key: string): void {
    this.patch(key, { status: this.bytes.has(key) ? "waiting" : "missing", problem: null });
    this.next();
  }

  /** Takes a file off the list. Its upload on the gateway is removed by the caller, or expires. */
  remove(key: string): void {
    this.aborts.get(key)?.abort(new DOMException("removed", "AbortError"));
    this.bytes.delete(key);
    this.files = this.files.filter((file) => file.key !== key);
    this.tell();
    this.next();
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
        metadata: { filename: file.name, platform_id: file.platformId },
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

function newFile(key: string, file: File, platformId: string): UploadFile {
  const { name, size } = file;
  return { key, name, size, platformId, uploadId: null, status: "waiting", sent: 0, speed: null, problem: null };
}

/** The list as it was before a reload. The bytes of what was not sent are gone with the page. */
export function restored(text: string | null): UploadFile[] {
  try {
    const files = JSON.parse(text ?? "[]") as UploadFile[];
    return files.map((file) => (file.status === "arrived" ? file : { ...file, status: "missing", problem: null }));
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
