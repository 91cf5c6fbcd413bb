/** The screens. Each folder beside this file has a `route.ts` with its addresses; a screen's code is loaded when it is
 * first shown. */

import type { ComponentType, LazyExoticComponent } from "react";

export interface Route {
  /** Addresses under `/console`, as wouter writes them: `/jobs/:id`. */
  paths: readonly string[];
  screen: LazyExoticComponent<ComponentType>;
}

const modules = import.meta.glob<{ route: Route }>("./*/route.ts", { eager: true });

export const ROUTES: readonly Route[] = Object.values(modules).map((module) => module.route);
