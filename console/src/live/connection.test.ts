import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LiveConnection, type LiveEvent, topicOf } from "./connection";

interface Stream {
  url: string;
  headers: Record<string, string>;
  send: (text: string) => void;
  close: () => void;
  aborted: () => boolean;
}

let streams: Stream[];
let refuse: number;

beforeEach(() => {
  vi.useFakeTimers();
  streams = [];
  refuse = 0;
  vi.stubGlobal("fetch", async (url: string, options: { headers: Record<string, string>; signal: AbortSignal }) => {
    if (refuse) return new Response("{}", { status: refuse });
    const pipe = new TransformStream<Uint8Array, Uint8Array>();
    const writer = pipe.writable.getWriter();
    const encoder = new TextEncoder();
    options.signal.addEventListener("abort", () => void writer.abort(new Error("aborted")).catch(() => undefined));
    streams.push({
      url,
      headers: options.headers,
      send: (text) => void writer.write(encoder.encode(text)).catch(() => undefined),
      close: () => void writer.close().catch(() => undefined),
      aborted: () => options.signal.aborted,
    });
    return new Response(pipe.readable);
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const job = (id: number) => `event: jobs.job\nid: jobs=${id}\ndata: {"id": ${id}}\n\n`;

describe("LiveConnection", () => {
  it("carries all topics in one stream, and hands events on twice a second", async () => {
    const connection = new LiveConnection(() => undefined);
    const jobs: LiveEvent[][] = [];
    connection.listen("jobs", (events) => jobs.push(events));
    connection.listen("instances", () => undefined);
    await vi.advanceTimersByTimeAsync(60);
    expect(streams.map((stream) => stream.url)).toEqual(["/api/v1/stream?topic=jobs&topic=instances"]);
    for (let id = 0; id < 40; id += 1) {
      streams[0]?.send(job(id));
      await vi.advanceTimersByTimeAsync(25);
    }
    expect(jobs.length).toBeLessThanOrEqual(2);
    await vi.advanceTimersByTimeAsync(500);
    expect(jobs.flat()).toHaveLength(40);
    expect(connection.current()).toMatchObject({ status: "live", received: 40 });
    connection.stop();
  });

  it("goes on after the last event when the gateway was away", async () => {
    const connection = new LiveConnection(() => undefined);
    const seen: unknown[] = [];
    connection.listen("jobs", (events) => seen.push(...events.map((event) => event.data)));
    await vi.advanceTimersByTimeAsync(60);
    streams[0]?.send(job(7));
    await vi.advanceTimersByTimeAsync(600);
    streams[0]?.close();
    await vi.advanceTimersByTimeAsync(100);
    expect(connection.current().status).toBe("off");
    await vi.advanceTimersByTimeAsync(1000);
    expect(streams[1]?.headers["Last-Event-ID"]).toBe("jobs=7");
    expect(connection.current().status).toBe("live");
    streams[1]?.send(job(8));
    await vi.advanceTimersByTimeAsync(600);
    expect(seen).toEqual([{ id: 7 }, { id: 8 }]);
    connection.stop();
  });

  it("begins another stream when a screen needs another topic, and ends with the last listener", async () => {
    const connection = new LiveConnection(() => undefined);
    const leave = connection.listen("jobs", () => undefined);
    await vi.advanceTimersByTimeAsync(60);
    const leaveJob = connection.listen("job:1", () => undefined);
    await vi.advanceTimersByTimeAsync(60);
    expect(streams[0]?.aborted()).toBe(true);
    expect(streams[1]?.url).toBe("/api/v1/stream?topic=jobs&topic=job%3A1");
    leave();
    leaveJob();
    await vi.advanceTimersByTimeAsync(60);
    expect(streams[1]?.aborted()).toBe(true);
    expect(connection.current().status).toBe("idle");
  });

  it("stops when the session has ended, and says so", async () => {
    refuse = 401;
    const refusals: number[] = [];
    const connection = new LiveConnection((status) => refusals.push(status));
    connection.listen("jobs", () => undefined);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(refusals).toEqual([401]);
    expect(connection.current().status).toBe("idle");
  });

  it("tries again, later and later, while the gateway does not answer", async () => {
    refuse = 503;
    const refusals: number[] = [];
    const connection = new LiveConnection((status) => refusals.push(status));
    connection.listen("jobs", () => undefined);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(refusals.length).toBeGreaterThan(4);
    expect(refusals.length).toBeLessThan(9);
    expect(connection.current().status).toBe("off");
    connection.stop();
  });
});

describe("topicOf", () => {
  it("finds the topic by the name before the dot", () => {
    expect(topicOf("job.event", ["jobs", "job:a"])).toBe("job:a");
    expect(topicOf("jobs.job", ["jobs", "job:a"])).toBe("jobs");
    expect(topicOf("other.x", ["jobs"])).toBeUndefined();
  });
});
