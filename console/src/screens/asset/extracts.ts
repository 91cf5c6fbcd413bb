/** Downloads that are too large for an answer: a job writes the file, which is then downloaded. */

import { asProblem, wording } from "@/api/problem";
import { readService } from "@/api/services";
import { bandsOf, factsOf } from "@/map/outputs";
import type { Toast } from "@/shell/toasts";

const MOST_ROWS = 1_000_000;
const MOST_SAMPLES = 400_000_000;
const PAUSE = 2_000;

interface Extract {
  status: "waiting" | "running" | "ready" | "failed";
  href: string;
  file_href: string | null;
  error: string | null;
}

/** Whether all of it is more than one answer may have. */
export function needsExtract(outputs: unknown): boolean {
  const { rows, shape } = factsOf(outputs);
  const samples = shape ? shape[0] * shape[1] * Math.max(bandsOf(outputs).length, 1) : 0;
  return (rows ?? 0) > MOST_ROWS || samples > MOST_SAMPLES;
}

/** Orders the file of a download, waits for it, and lets the browser download it. */
export async function downloadExtract(path: string, toast: (toast: Toast) => void): Promise<void> {
  try {
    let extract = await readService<Extract>(path, undefined, "POST");
    toast({ text: "The file is large, so a job writes it. The download begins by itself; leave this page open." });
    while (extract.status === "waiting" || extract.status === "running") {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      extract = await readService<Extract>(extract.href);
    }
    if (extract.file_href) location.assign(extract.file_href);
    else toast({ text: `There is no file: ${extract.error ?? "the job failed"}.`, bad: true });
  } catch (error) {
    const { happened, remedy } = wording(asProblem(error));
    toast({ text: `${happened} ${remedy}`.trim(), bad: true });
  }
}
