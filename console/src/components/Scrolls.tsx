import type { ReactNode } from "react";

/** What may be wider than the screen. It scrolls by itself, and keys reach it. */
export function Scrolls({ label, className, children }: { label: string; className?: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keys
    <section className={`scrolls ${className ?? ""}`} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
