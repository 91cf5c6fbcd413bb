/** Icons of 16 px, drawn with one line in the colour of the text. */

const PATHS = {
  find: "M7 2.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4M10.2 10.2 14 14",
  person: "M8 2.8a2.7 2.7 0 1 1 0 5.4 2.7 2.7 0 0 1 0-5.4M2.8 13.8c.6-3 2.7-4.3 5.2-4.3s4.6 1.3 5.2 4.3",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  close: "M4 4l8 8M12 4l-8 8",
  warning: "M8 2.5 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.1",
  info: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2M8 7.4v3.6M8 5v.1",
  done: "M3 8.5 6.5 12 13 4.5",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  stop: "M4 4h8v8H4z",
  play: "M5 3.5v9l7-4.5z",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  more: "M3 8h.1M8 8h.1M13 8h.1",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  extent: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  layers: "M8 2.5 14 6 8 9.5 2 6zM2.5 9.2 8 12.5l5.5-3.3",
  left: "M10 3 5 8l5 5",
  right: "M6 3l5 5-5 5",
  down: "M3.5 6 8 10.5 12.5 6",
  up: "M3.5 10 8 5.5 12.5 10",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
  upload: "M8 11V3M4.5 6.5 8 3l3.5 3.5M3 13h10",
  download: "M8 3v8M4.5 7.5 8 11l3.5-3.5M3 13h10",
  link: "M6.5 9.5 9.5 6.5M7 4.5l1.8-1.8a2.6 2.6 0 0 1 3.7 3.7L10.7 8.2M9 11.5l-1.8 1.8a2.6 2.6 0 0 1-3.7-3.7L5.3 7.8",
  out: "M9 3h4v4M13 3 7.5 8.5M11 9.5V13H3V5h3.5",
  key: "M5 8.5a2.8 2.8 0 1 1 2.6 2.8M7.3 8.7 13.5 2.5M11 5l2 2",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6M8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  moon: "M13 9.6A5.6 5.6 0 0 1 6.4 3a5.6 5.6 0 1 0 6.6 6.6z",
  divider: "M8 2v12M5 5.5 2.5 8 5 10.5M11 5.5 13.5 8 11 10.5",
  calendar: "M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2.5V5M10.5 2.5V5",
} as const;

export type IconName = keyof typeof PATHS;

/** An icon. It is decoration beside words; a button with an icon alone has an `aria-label`. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="i" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Mark() {
  return (
    <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
      <g fill="none" stroke="var(--accent)" strokeWidth="1.5">
        <circle cx="10" cy="10" r="8.2" />
        <path d="M10 1.8c4.6 4.6 4.6 11.8 0 16.4M10 1.8C5.4 6.4 5.4 13.6 10 18.2M1.8 10h16.4" />
      </g>
      <circle cx="10" cy="10" r="2.4" fill="var(--accent)" />
    </svg>
  );
}
