/** Small choices that this browser keeps. A browser may forbid it; then they last as long as the page. */

const memory = new Map<string, string>();

export function recall(name: string): string | null {
  try {
    return localStorage.getItem(`geomill.${name}`);
  } catch {
    return memory.get(name) ?? null;
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`geomill.${name}`, value);
  } catch {
    memory.set(name, value);
  }
}
