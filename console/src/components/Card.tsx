import type { ReactNode } from "react";
import { useId } from "react";

/** A titled surface. Not around the map or the work of a screen: those are the page. */
export function Card(properties: {
  title: ReactNode;
  count?: ReactNode;
  aside?: ReactNode;
  className?: string;
  flush?: boolean;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section className={`card ${properties.className ?? ""}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{properties.title}</h2>
        {properties.count}
        {properties.aside && <span className="right">{properties.aside}</span>}
      </header>
      {properties.flush ? properties.children : <div className="in">{properties.children}</div>}
    </section>
  );
}

/** A number in a pill. Hot ones ask for attention. */
export function Count({ value, hot = false }: { value: number; hot?: boolean }) {
  return <span className={hot ? "count hot" : "count"}>{value.toLocaleString("en-GB")}</span>;
}
