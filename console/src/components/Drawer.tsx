import type { ReactNode } from "react";
import { useKeys } from "@/shell/keys";
import { Button } from "./Button";

/** Details beside the content: it pushes the content on wide screens, lies over it on narrow ones, and is a sheet from
 * below on a phone. Put it last inside `<div className="with-drawer">`. Escape closes it. */
export function Drawer(properties: {
  title: ReactNode;
  label: string;
  badge?: ReactNode;
  beneath?: ReactNode;
  onClose: () => void;
  footer?: ReactNode;
  children: ReactNode;
}) {
  useKeys([{ keys: "Escape", label: "close", run: properties.onClose }]);
  return (
    <aside className="drawer" aria-label={properties.label}>
      <header className="stack">
        <div className="line">
          <h2 className="grow cut">{properties.title}</h2>
          {properties.badge}
          <Button kind="quiet" icon="close" aria-label="Close" onClick={properties.onClose} />
        </div>
        {properties.beneath && <div className="small soft">{properties.beneath}</div>}
      </header>
      {properties.children}
      {properties.footer && <footer>{properties.footer}</footer>}
    </aside>
  );
}
