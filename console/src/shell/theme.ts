/** Light or dark, as the system says or as chosen here. */

import { useCallback, useSyncExternalStore } from "react";
import { recall, remember } from "./remembered";

export type Theme = "system" | "light" | "dark";

const listeners = new Set<() => void>();

export function applyTheme(): void {
  const theme = currentTheme();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function currentTheme(): Theme {
  const asked = new URLSearchParams(location.search).get("theme") ?? recall("theme");
  return asked === "light" || asked === "dark" ? asked : "system";
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const theme = useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, currentTheme);
  const choose = useCallback((chosen: Theme) => {
    remember("theme", chosen);
    applyTheme();
    for (const listener of listeners) listener();
  }, []);
  return [theme, choose];
}

/** Whether the page is dark now, by choice or by the system. */
export function isDark(): boolean {
  const theme = currentTheme();
  return theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
}
