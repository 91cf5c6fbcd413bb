import { describe, expect, it } from "vitest";
import { ApiProblem, unreachable } from "@/api/problem";
import { metadataHeader, sendFile, type Wire } from "./tus";

const SIZE = 40 * 1024 * 1024;

/** A gateway in memory: it keeps what was sent, and fails when it is told to. */
class MemoryWire implements Wire {
  received = 0;
  created = 0;
  pieces: number[] = [];
  failures: (ApiProblem | null)[] = [];

  async create(): Promise<string> {
    this.created += 1;
    this.received = 0;
    return `upload-${this.created}`;
  }

  async offset(): Promise<number> {
    this.fail();
    return this.received;
  }

  async send(_: string, offset: number, piece: Blob): Promise<number> {
    this.fail();
    if (offset !== this.received) throw new ApiProblem(409, "conflict", "another offset");
    this.pieces.push(piece.size);
    this.received += piece.size;
    return this.received;
  }

  private fail(): void {
    const failure = this.failures.shift();
    if (failure) throw failure;
  }
}

function send(wire: MemoryWire, uploadId: string | null = null) {
  const progress: number[] = [];
  const done = sendFile({
    file: new Blob([new Uint8Array(SIZE)]),
    metadata: { filename: "a.tif" },
    uploadId,
    signal: new AbortController().signal,
    onBegun: () => undefined,
    onProgress: (sent) => progress.push(sent),
    wire,
    pause: async () => undefined,
  });
  return { done, progress };
}

describe("sending a file", () => {
  it("sends pieces until the gateway has all bytes", async () => {
    const wire = new MemoryWire();
    const { done, progress } = send(wire);
    expect(await done).toBe("upload-1");
    expect(wire.pieces).toEqual([16777216, 16777216, SIZE - 2 * 16777216]);
    expect(progress.at(-1)).toBe(SIZE);
  });

  it("continues where the gateway says, not where this page was", async () => {
    const wire = new MemoryWire();
    wire.received = SIZE - 10;
    await send(wire, "upload-0").done;
    expect(wire.created).toBe(0);
    expect(wire.pieces).toEqual([10]);
  });

  it("waits and asks for the offset again after a break, a lock or another offset", async () => {
    const wire = new MemoryWire();
    const lock = new ApiProblem(423, "locked", "another request sends bytes");
    wire.failures = [null, null, unreachable(), null, lock, null, new ApiProblem(409, "conflict", "moved")];
    await send(wire).done;
    expect(wire.received).toBe(SIZE);
  });

  it("begins anew if the upload is gone, once", async () => {
    const wire = new MemoryWire();
    wire.failures = [new ApiProblem(404, "not_found", "gone")];
    expect(await send(wire, "upload-0").done).toBe("upload-1");
    wire.failures = [new ApiProblem(404, "not_found", "gone"), new ApiProblem(410, "gone", "failed")];
    await expect(send(wire, "upload-0").done).rejects.toMatchObject({ status: 410 });
  });

  it("gives up at a refusal, and after six breaks in a row", async () => {
    const wire = new MemoryWire();
    wire.failures = [new ApiProblem(507, "no_room", "the disk is full")];
    await expect(send(wire).done).rejects.toMatchObject({ code: "no_room" });
    wire.failures = Array.from({ length: 6 }, unreachable);
    await expect(send(wire).done).rejects.toMatchObject({ status: 0 });
  });
});

it("writes metadata as base64 of UTF-8", () => {
  expect(metadataHeader({ filename: "Grüße.gpkg", platform_id: "ddh" })).toBe(
    "filename R3LDvMOfZS5ncGtn,platform_id ZGRo",
  );
});
