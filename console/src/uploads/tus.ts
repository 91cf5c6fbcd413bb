/** Sends a file by the tus protocol: in pieces, and after a break from the byte that the gateway has. */

import { OWN_PAGE, onRefused } from "@/api/client";
import { ApiProblem, problemOf, unreachable } from "@/api/problem";

export const UPLOADS = "/api/platform/uploads";
const VERSION = { "Tus-Resumable": "1.0.0" };
const OFFSET = "Upload-Offset";
const PIECE_BYTES = 16 * 1024 * 1024;
const WAITS = [1_000, 2_000, 4_000, 8_000, 15_000];
/** Another request still sends bytes, or the offset has moved: ask again and go on. */
const ASK_AGAIN = [409, 423, 460];
const GONE = [404, 410];

export type Metadata = Record<string, string>;
type Progress = (bytes: number) => void;

/** The requests of the protocol. */
export interface Wire {
  create(size: number, metadata: Metadata, signal: AbortSignal): Promise<string>;
  /** The bytes that are safe. */
  offset(uploadId: string, signal: AbortSignal): Promise<number>;
  send(uploadId: string, offset: number, piece: Blob, signal: AbortSignal, onBytes: Progress): Promise<number>;
}

export interface Sending {
  file: Blob;
  metadata: Metadata;
  /** The upload to continue, if it has begun. */
  uploadId: string | null;
  signal: AbortSignal;
  onBegun: (uploadId: string) => void;
  onProgress: (sent: number) => void;
  wire?: Wire;
  pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** Sends all that the gateway does not have yet. Returns the id of the upload. An upload that is gone begins anew. */
export async function sendFile(sending: Sending): Promise<string> {
  const { file, metadata, signal } = sending;
  const wire = sending.wire ?? browserWire;
  let uploadId = sending.uploadId;
  let failures = 0;
  for (;;) {
    try {
      if (uploadId === null) {
        uploadId = await wire.create(file.size, metadata, signal);
        sending.onBegun(uploadId);
      }
      let offset = await wire.offset(uploadId, signal);
      sending.onProgress(offset);
      while (offset < file.size) {
        const start = offset;
        const piece = file.slice(start, start + PIECE_BYTES);
        offset = await wire.send(uploadId, start, piece, signal, (bytes) => sending.onProgress(start + bytes));
        failures = 0;
        sending.onProgress(offset);
      }
      return uploadId;
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiProblem)) throw error;
      const gone = GONE.includes(error.status) && uploadId !== null;
      if (gone && failures === 0) uploadId = null;
      else if (gone || !(error.passes || ASK_AGAIN.includes(error.status)) || failures >= WAITS.length) throw error;
      const wait = error.retryAfter ? error.retryAfter * 1000 : WAITS[failures];
      failures += 1;
      await (sending.pause ?? pause)(wait ?? 0, signal);
    }
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** `name BASE64,name BASE64`, with the values as UTF-8. */
export function metadataHeader(metadata: Metadata): string {
  return Object.entries(metadata)
    .map(([name, value]) => `${name} ${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}`)
    .join(",");
}

async function call(path: string, signal: AbortSignal, method: string, headers: Record<string, string>) {
  const response = await fetch(path, {
    method,
    signal,
    credentials: "same-origin",
    headers: { ...OWN_PAGE, ...VERSION, ...headers },
  }).catch((error: unknown) => {
    throw signal.aborted ? error : unreachable();
  });
  if (response.ok) return response;
  onRefused(response);
  throw problemOf(response, await response.json().catch(() => null));
}

const browserWire: Wire = {
  async create(size, metadata, signal) {
    const headers = { "Upload-Length": String(size), "Upload-Metadata": metadataHeader(metadata) };
    const response = await call(UPLOADS, signal, "POST", headers);
    return (response.headers.get("Location") ?? "").split("/").at(-1) ?? "";
  },

  async offset(uploadId, signal) {
    const response = await call(`${UPLOADS}/${uploadId}`, signal, "HEAD", {});
    return Number(response.headers.get(OFFSET));
  },

  /** `fetch` does not tell how much of a body has been sent, so this is an XMLHttpRequest. */
  send(uploadId, offset, piece, signal, onBytes) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("PATCH", `${UPLOADS}/${uploadId}`);
      const headers = { ...OWN_PAGE, ...VERSION, [OFFSET]: String(offset) };
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.setRequestHeader("Content-Type", "application/offset+octet-stream");
      request.upload.onprogress = (event) => onBytes(event.loaded);
      request.onerror = () => reject(unreachable());
      request.onabort = () => reject(signal.reason);
      request.onload = () => {
        if (request.status === 204) return resolve(Number(request.getResponseHeader(OFFSET)));
        const response = new Response(null, { status: request.status === 0 ? 503 : request.status });
        onRefused(response);
        reject(problemOf(response, parsed(request.responseText)));
      };
      signal.addEventListener("abort", () => request.abort());
      request.send(piece);
    });
  },
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
