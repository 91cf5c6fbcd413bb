/** The one stream of a page. It carries all topics that screens listen to, because a browser opens only six connections
 * to a gateway, and each stream would hold one. Events are handed on at most twice a second. */

import { OWN_PAGE } from "@/api/client";
import { EventParser, type ServerEvent } from "./sse";

/** `jobs`, `instances`, `reviews`, or `job:ID`. */
export type Topic = "jobs" | "instances" | "reviews" | `job:${string}`;

export interface LiveEvent {
  /** The name without its topic: `changed`, `job`, `reset`. */
  name: string;
  data: unknown;
}

export type Listener = (events: LiveEvent[]) => void;

export interface LiveState {
  status: "live" | "connecting" | "off" | "idle";
  /** Since when the page is not live. */
  since: number;
  received: number;
}

export const FLUSH_MILLISECONDS = 500;
export const HIDDEN_MILLISECONDS = 60_000;
const WAITS = [1_000, 2_000, 4_000, 8_000, 15_000];
const SETTLE_MILLISECONDS = 50;

/** The topic of an event: those of one job are named `job.…`. */
export function topicOf(name: string, topics: Iterable<Topic>): Topic | undefined {
  const prefix = name.split(".", 1)[0];
  for (const topic of topics) if (topic.split(":", 1)[0] === prefix) return topic;
  return undefined;
}

export class LiveConnection {
  private readonly listeners = new Map<Topic, Set<Listener>>();
  private readonly watchers = new Set<() => void>();
  private readonly waiting = new Map<Topic, LiveEvent[]>();
  private state: LiveState = { status: "idle", since: Date.now(), received: 0 };
  private abort: AbortController | null = null;
  private failures = 0;
  private lastId = "";
  private flushTimer: ReturnType<typeof setTimeout> | undefined;
  private startTimer: ReturnType<typeof setTimeout> | undefined;
  private hiddenTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly onRefused: (status: number) => void) {}

  /** Listens to a topic until the returned function is called. */
  listen(topic: Topic, listener: Listener): () => void {
    const known = this.listeners.get(topic);
    if (known) known.add(listener);
    else {
      this.listeners.set(topic, new Set([listener]));
      this.restart();
    }
    return () => {
      const listeners = this.listeners.get(topic);
      listeners?.delete(listener);
      if (listeners?.size === 0) {
        this.listeners.delete(topic);
        this.restart();
      }
    };
  }

  readonly watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  readonly current = (): LiveState => this.state;

  /** A hidden page gives its connection back after a minute, and is right again when it is shown. */
  readonly visibilityChanged = (): void => {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) this.hiddenTimer = setTimeout(() => this.stop(), HIDDEN_MILLISECONDS);
    else if (!this.abort && this.listeners.size > 0) this.restart();
  };

  stop(): void {
    clearTimeout(this.startTimer);
    this.abort?.abort();
    this.abort = null;
    this.tell({ status: "idle" });
  }

  retryNow(): void {
    this.failures = 0;
    this.restart();
  }

  /** Topics often change together, so a change waits a moment for others. */
  private restart(milliseconds = SETTLE_MILLISECONDS): void {
    clearTimeout(this.startTimer);
    this.startTimer = setTimeout(() => {
      this.abort?.abort();
      this.abort = null;
      this.lastId = "";
      if (this.listeners.size > 0) void this.run();
      else this.tell({ status: "idle" });
    }, milliseconds);
  }

  private async run(): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    while (!abort.signal.aborted) {
      if (this.state.status !== "off") this.tell({ status: "connecting" });
      const refused = await this.follow(abort.signal).catch(() => 0);
      if (abort.signal.aborted) return;
      if (refused) {
        this.onRefused(refused);
        if (refused === 401) return this.stop();
      }
      this.tell({ status: "off", since: this.state.status === "off" ? this.state.since : Date.now() });
      const wait = WAITS[Math.min(this.failures, WAITS.length - 1)] ?? 15_000;
      this.failures += 1;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  /** Follows the stream until it ends. Returns the status of a refusal, or 0. */
  private async follow(signal: AbortSignal): Promise<number> {
    const topics = [...this.listeners.keys()]; // a change of topics begins another stream
    const query = new URLSearchParams(topics.map((topic) => ["topic", topic]));
    const headers = { ...OWN_PAGE, ...(this.lastId ? { "Last-Event-ID": this.lastId } : {}) };
    const response = await fetch(`/api/v1/stream?${query}`, { signal, headers, credentials: "same-origin" });
    if (!response.ok || !response.body) return response.status;
    this.failures = 0;
    this.tell({ status: "live" });
    const parser = new EventParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return 0;
      for (const event of parser.take(value)) this.take(event, topics);
    }
  }

  private take(event: ServerEvent, topics: Topic[]): void {
    if (event.id) this.lastId = event.id;
    const topic = topicOf(event.event, topics);
    if (!topic) return;
    const name = event.event.slice(event.event.indexOf(".") + 1);
    const events = this.waiting.get(topic);
    if (events) events.push({ name, data: event.data });
    else this.waiting.set(topic, [{ name, data: event.data }]);
    this.flushTimer ??= setTimeout(() => this.flush(), FLUSH_MILLISECONDS);
  }

  private flush(): void {
    this.flushTimer = undefined;
    const batches = [...this.waiting];
    this.waiting.clear();
    let received = 0;
    for (const [topic, events] of batches) {
      received += events.length;
      for (const listener of this.listeners.get(topic) ?? []) listener(events);
    }
    this.tell({ received: this.state.received + received });
  }

  private tell(change: Partial<LiveState>): void {
    this.state = { ...this.state, ...change };
    for (const watcher of this.watchers) watcher();
  }
}
