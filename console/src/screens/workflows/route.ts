import { lazy } from "react";
import type { Route } from "..";

export const route: Route = {
  paths: ["/workflows", "/workflows/:id"],
  screen: lazy(() => import("./Workflows")),
};
