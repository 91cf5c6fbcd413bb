import { type KeyboardEvent, type ReactNode, useId, useRef } from "react";

export interface Tab<Name extends string> {
  name: Name;
  label: ReactNode;
  content: () => ReactNode;
}

/** Tabs. The screen keeps the chosen one in the address: `useAddress("tab", "revisions")`. */
export function Tabs<Name extends string>(properties: {
  label: string;
  tabs: readonly Tab<Name>[];
  current: Name;
  onChange: (name: Name) => void;
}) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const { tabs } = properties;
  const chosen = tabs.find((tab) => tab.name === properties.current) ?? tabs[0];
  const moved = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !chosen) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(chosen) + step + tabs.length) % tabs.length];
    if (!next) return;
    properties.onChange(next.name);
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" aria-label={properties.label} ref={list} onKeyDown={moved}>
        {tabs.map((tab) => (
          <button
            key={tab.name}
            type="button"
            role="tab"
            id={`${id}-${tab.name}`}
            data-tab={tab.name}
            aria-selected={tab === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={tab === chosen ? 0 : -1}
            onClick={() => properties.onChange(tab.name)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      {/* It may scroll, so the keyboard must reach it. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: as the pattern of tabs asks */}
      <div className="panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen?.name}`} tabIndex={0}>
        {chosen?.content()}
      </div>
    </>
  );
}
