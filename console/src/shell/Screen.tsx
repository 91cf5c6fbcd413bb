import { Fragment, type ReactNode, useEffect, useRef } from "react";
import { clock } from "@/format/time";
import { useLiveState, useReconnect } from "@/live";
import { signs, useAllKeys } from "./keys";

interface ScreenProps {
  /** The title of the page and, unless `heading` is given, of the screen. */
  title: string;
  heading?: ReactNode;
  /** What stands beside the heading: state, figures. */
  beside?: ReactNode;
  actions?: ReactNode;
  /** What the status line says about this screen. */
  status?: readonly ReactNode[];
  /** Whether the content fills the page and scrolls by itself, as a map or a long table does. */
  fills?: boolean;
  children: ReactNode;
}

/** A screen: title row, content, and its part of the status line. */
export function Screen(properties: ScreenProps) {
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = `${properties.title} · geomill`;
  }, [properties.title]);
  return (
    <>
      <div className="head">
        {properties.heading ?? <h1>{properties.title}</h1>}
        {properties.beside}
        {properties.actions && <div className="actions">{properties.actions}</div>}
      </div>
      <main id="main" tabIndex={-1} ref={main} className={properties.fills ? "fills" : undefined}>
        {properties.children}
      </main>
      <StatusLine facts={properties.status ?? []} />
    </>
  );
}

function StatusLine({ facts }: { facts: readonly ReactNode[] }) {
  const keys = useAllKeys().filter((binding) => binding.shown);
  return (
    <footer className="foot">
      <Live />
      {facts.map((fact, place) => (
        <Fragment key={place}>
          <span className="sep" />
          <span>{fact}</span>
        </Fragment>
      ))}
      <span className="right desk">
        {keys.map((binding) => (
          <span key={binding.keys}>
            {signs(binding.sign ?? binding.keys).map((sign, place) => (
              <Fragment key={place}>
                <kbd>{sign}</kbd>{" "}
              </Fragment>
            ))}
            {binding.label}
          </span>
        ))}
      </span>
    </footer>
  );
}

function Live() {
  const state = useLiveState();
  const reconnect = useReconnect();
  if (state.status === "idle") return <span className="dim">Not a live screen</span>;
  if (state.status === "live") return <span className="live">Live</span>;
  if (state.status === "connecting") return <span className="live waits">Connecting</span>;
  return (
    <button type="button" className="live off link" onClick={reconnect}>
      Not live since {clock(state.since)}, try now
    </button>
  );
}
