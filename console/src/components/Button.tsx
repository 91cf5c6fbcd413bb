import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Link } from "wouter";
import { Icon, type IconName } from "./Icon";

interface Look {
  /** At most one primary button on a screen. Danger is outlined, never filled. */
  kind?: "primary" | "danger" | "quiet";
  size?: "large";
  icon?: IconName;
  /** The key that does the same, shown inside. */
  hint?: string;
}

function classes({ kind, size }: Look, lone: boolean): string {
  return ["button", kind, size, lone && "icon"].filter(Boolean).join(" ");
}

function Inside({ icon, hint, children }: Look & { children?: ReactNode }) {
  return (
    <>
      {icon && <Icon name={icon} />}
      {children}
      {hint && <kbd aria-hidden="true">{hint}</kbd>}
    </>
  );
}

export function Button({ kind, size, icon, hint, children, ...rest }: Look & ButtonHTMLAttributes<HTMLButtonElement>) {
  const lone = icon !== undefined && !children;
  return (
    <button type="button" className={classes({ kind, size }, lone)} {...rest}>
      <Inside icon={icon} hint={hint}>
        {children}
      </Inside>
    </button>
  );
}

/** A link to a place of the console that looks like a button. */
export function ButtonLink({ kind, size, icon, hint, href, children }: Look & { href: string; children: ReactNode }) {
  return (
    <Link className={classes({ kind, size }, false)} href={href}>
      <Inside icon={icon} hint={hint}>
        {children}
      </Inside>
    </Link>
  );
}

export interface SegmentOption<Value extends string> {
  value: Value;
  label: ReactNode;
}

/** A choice of one among a few, all visible. */
export function Segments<Value extends string>(properties: {
  label: string;
  options: readonly SegmentOption<Value>[];
  value: Value;
  onChange: (value: Value) => void;
}) {
  return (
    <fieldset className="segments" aria-label={properties.label}>
      {properties.options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === properties.value}
          onClick={() => properties.onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}
