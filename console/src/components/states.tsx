/** The sign and the word of each state. Shape tells the machine: circle for work, square for approval, hexagon for
 * clearance. The word is the API's own, in lower case. */

import type { JSX } from "react";

const line = { fill: "none", stroke: "currentColor", strokeWidth: 1.6 } as const;
const mark = {
  fill: "none",
  stroke: "var(--surface)",
  strokeWidth: 1.7,
  strokeLinecap: "round",
  strokeLinejoin: "round",
} as const;
const HEXAGON = "M7 .9 12.3 4v6L7 13.1 1.7 10V4z";

const ring = <circle cx="7" cy="7" r="5.4" {...line} />;
const square = <rect x=".8" y=".8" width="12.4" height="12.4" rx="2" fill="currentColor" />;

const GLYPHS = {
  queued: <circle cx="7" cy="7" r="5.4" {...line} strokeDasharray="1.6 1.8" />,
  pending: ring,
  ready: (
    <>
      {ring}
      <circle cx="7" cy="7" r="2.2" fill="currentColor" />
    </>
  ),
  dispatched: (
    <>
      {ring}
      <path d="M7 1.6a5.4 5.4 0 0 1 0 10.8z" fill="currentColor" />
    </>
  ),
  running: (
    <>
      <circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" strokeWidth={2} opacity=".28" />
      <path
        d="M7 1.8a5.2 5.2 0 1 1-5.2 5.2"
        fill="none"
        stroke="currentColor"
        strokeWidth={2.2}
        strokeLinecap="round"
      />
    </>
  ),
  paused: (
    <>
      {ring}
      <path d="M5.4 4.8v4.4M8.6 4.8v4.4" {...line} strokeLinecap="round" />
    </>
  ),
  completed: (
    <>
      <circle cx="7" cy="7" r="6.2" fill="currentColor" />
      <path d="M4.2 7.2l2 2 3.6-4" {...mark} />
    </>
  ),
  failed: (
    <>
      <circle cx="7" cy="7" r="6.2" fill="currentColor" />
      <path d="M4.9 4.9l4.2 4.2M9.1 4.9L4.9 9.1" {...mark} />
    </>
  ),
  skipped: (
    <>
      {ring}
      <path d="M4.6 7h4.8" {...line} strokeLinecap="round" />
    </>
  ),
  cancelled: (
    <>
      {ring}
      <path d="M3.4 10.6l7.2-7.2" {...line} />
    </>
  ),
  pending_review: (
    <>
      <rect x="1.4" y="1.4" width="11.2" height="11.2" rx="1.6" {...line} />
      <circle cx="7" cy="7" r="2.1" fill="currentColor" />
    </>
  ),
  approved: (
    <>
      {square}
      <path d="M4 7.2l2.1 2.1L10 5" {...mark} />
    </>
  ),
  rejected: (
    <>
      {square}
      <path d="M4.7 4.7l4.6 4.6M9.3 4.7L4.7 9.3" {...mark} />
    </>
  ),
  uncleared: <path d={HEXAGON} {...line} strokeDasharray="2.4 1.6" />,
  ouo: (
    <>
      <path d={HEXAGON} {...line} />
      <path d="M7 .9 12.3 4v6L7 13.1z" fill="currentColor" />
    </>
  ),
  public: (
    <>
      <path d={HEXAGON} fill="currentColor" />
      <path
        d="M3.6 7h6.8M7 3.4c1.7 2.2 1.7 5 0 7.2M7 3.4c-1.7 2.2-1.7 5 0 7.2"
        fill="none"
        stroke="var(--surface)"
        strokeWidth={1.1}
      />
    </>
  ),
} satisfies Record<string, JSX.Element>;

export type StateName = keyof typeof GLYPHS;

const WORDS: Partial<Record<string, string>> = { pending_review: "pending review", ouo: "official use only" };
const ALIASES: Partial<Record<string, StateName>> = { processing: "running", revoked: "rejected", parked: "paused" };

/** The state whose sign and colour a word of the API has. A word that we do not know looks like `pending`. */
export function stateOf(word: string): StateName {
  return word in GLYPHS ? (word as StateName) : (ALIASES[word] ?? "pending");
}

export function stateWord(word: string): string {
  return WORDS[word] ?? word.replaceAll("_", " ");
}

interface StateProps {
  /** The API's word: `running`, `pending_review`. */
  state: string;
  /** Another word than the state's own. */
  children?: React.ReactNode;
}

/** The sign alone. Beside a word it is decoration; alone it has a title. */
export function Glyph({ state, title }: { state: string; title?: string }) {
  const classes = `g st-${stateOf(state)} glyph`;
  if (!title) {
    return (
      <svg className={classes} viewBox="0 0 14 14" aria-hidden="true">
        {GLYPHS[stateOf(state)]}
      </svg>
    );
  }
  return (
    <svg className={classes} viewBox="0 0 14 14" role="img">
      <title>{title}</title>
      {GLYPHS[stateOf(state)]}
    </svg>
  );
}

/** A coloured badge, for heads and drawers. */
export function Badge({ state, children }: StateProps) {
  return (
    <span className={`badge st-${stateOf(state)}`}>
      <Glyph state={state} />
      {children ?? stateWord(state)}
    </span>
  );
}

/** Sign in colour and word in ink, for tables. */
export function State({ state, children }: StateProps) {
  return (
    <span className="state">
      <Glyph state={state} />
      {children ?? stateWord(state)}
    </span>
  );
}
