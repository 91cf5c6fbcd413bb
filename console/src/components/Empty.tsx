import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";

/** What would be here, and the one thing to do. */
export function Empty(properties: { title: string; children?: ReactNode; action?: ReactNode; icon?: IconName }) {
  return (
    <div className="empty">
      <Icon name={properties.icon ?? "done"} />
      <span className="strong">{properties.title}</span>
      {properties.children && <p className="small">{properties.children}</p>}
      {properties.action}
    </div>
  );
}
