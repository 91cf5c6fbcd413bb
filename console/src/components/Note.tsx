import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";

const ICONS = { warn: "warning", bad: "warning", good: "done", info: "info" } as const satisfies Record<
  string,
  IconName
>;

/** A message: words first, remedy last. */
export function Note({ kind, children, more }: { kind: keyof typeof ICONS; children: ReactNode; more?: ReactNode }) {
  return (
    <div className={`note ${kind}`}>
      <Icon name={ICONS[kind]} />
      <span>{children}</span>
      {more && <span className="small soft">{more}</span>}
    </div>
  );
}
