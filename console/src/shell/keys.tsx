/** Keys: screens say which keys they have; one listener runs them, and `?` shows them all. */

import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import { recall, remember } from "./remembered";

export interface KeyBinding {
  /** `j`, `Shift+X`, `ArrowDown`, `Ctrl+Enter`, or two keys after each other: `g o`. */
  keys: string;
  /** What it does, in the list of keys. */
  label: string;
  run: () => void;
  /** Whether the status line shows it. */
  shown?: boolean;
  /** How the status line writes the key. */
  sign?: string;
}

const SEQUENCE_MILLISECONDS = 1200;
const SIGNS: Record<string, string> = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

/** The name of a pressed key: `j`, `Shift+X`, `Ctrl+Enter`. */
export function nameOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "shiftKey" | "altKey">): string {
  const parts: string[] = [];
  if (event.ctrlKey || event.metaKey) parts.push("Ctrl");
  if (event.altKey) parts.push("Alt");
  const letter = /^[a-z]$/i.test(event.key);
  if (event.shiftKey && (letter || event.key.length > 1)) parts.push("Shift");
  parts.push(letter ? (event.shiftKey ? event.key.toUpperCase() : event.key.toLowerCase()) : event.key);
  return parts.join("+");
}

/** The signs of a binding's keys, for people: `G O`, `Shift X`. */
export function signs(keys: string): string[] {
  return keys.split(/[ +]/).map((key) => SIGNS[key] ?? (key.length === 1 ? key.toUpperCase() : key));
}

/** Whether keys belong to the element that has the focus: a field takes them all, Escape and Ctrl+Enter excepted. */
export function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement)
    return true;
  return target instanceof HTMLInputElement && !["checkbox", "radio", "button", "range"].includes(target.type);
}

class KeyRegistry {
  readonly bindings = new Map<symbol, KeyBinding[]>();
  private readonly watchers = new Set<() => void>();
  private first: { key: string; at: number } | null = null;

  set(owner: symbol, bindings: KeyBinding[]): void {
    this.bindings.set(owner, bindings);
    for (const watcher of this.watchers) watcher();
  }

  remove(owner: symbol): void {
    this.bindings.delete(owner);
    for (const watcher of this.watchers) watcher();
  }

  readonly watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  /** All bindings, those of the newest owner first: a drawer's keys come before those of its screen. */
  all(): KeyBinding[] {
    return [...this.bindings.values()].reverse().flat();
  }

  /** The binding that a pressed key completes. */
  match(key: string, now: number): KeyBinding | undefined {
    const before = this.first && now - this.first.at < SEQUENCE_MILLISECONDS ? `${this.first.key} ${key}` : null;
    this.first = null;
    const binding = this.all().find((entry) => entry.keys === before) ?? this.all().find((entry) => entry.keys === key);
    if (!binding && this.all().some((entry) => entry.keys.startsWith(`${key} `))) this.first = { key, at: now };
    return binding;
  }
}

const KeyContext = createContext<KeyRegistry | null>(null);

export function KeyProvider({ children }: { children: ReactNode }) {
  const [registry] = useState(() => new KeyRegistry());
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const key = nameOf(event);
      const always = key === "Escape" || key.startsWith("Ctrl+");
      if (event.defaultPrevented || (isField(event.target) && !always)) return;
      if (!always && key.length === 1 && !singleKeysOn()) return;
      const inDialog = document.querySelector("dialog[open]") !== null;
      if (inDialog && key !== "Escape") return;
      const binding = registry.match(key, Date.now());
      if (binding && !inDialog) {
        event.preventDefault();
        binding.run();
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [registry]);
  return <KeyContext value={registry}>{children}</KeyContext>;
}

function useRegistry(): KeyRegistry {
  const registry = useContext(KeyContext);
  if (!registry) throw new Error("KeyProvider is missing");
  return registry;
}

/** Gives a component keys while it is shown. The bindings may be another array at each render. */
export function useKeys(bindings: KeyBinding[]): void {
  const registry = useRegistry();
  const [owner] = useState(() => Symbol("keys"));
  const latest = useRef(bindings);
  latest.current = bindings;
  const shape = bindings.map((binding) => `${binding.keys}\t${binding.label}\t${binding.shown}`).join("\n");
  useEffect(() => {
    // `shape` says when the list itself changes; what the keys run is read when they are pressed.
    const stable = shape
      ? latest.current.map((binding, place) => ({ ...binding, run: () => latest.current[place]?.run() }))
      : [];
    registry.set(owner, stable);
    return () => registry.remove(owner);
  }, [registry, owner, shape]);
}

export function useAllKeys(): KeyBinding[] {
  const registry = useRegistry();
  const [bindings, setBindings] = useState<KeyBinding[]>([]);
  useEffect(() => {
    setBindings(registry.all());
    return registry.watch(() => setBindings(registry.all()));
  }, [registry]);
  return useMemo(() => bindings, [bindings]);
}

export function singleKeysOn(): boolean {
  return recall("single-keys") !== "off";
}

export function switchSingleKeys(on: boolean): void {
  remember("single-keys", on ? "on" : "off");
}
