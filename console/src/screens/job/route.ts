import { lazy } from "react";
import type { Route } from "..";

export const route: Route = { paths: ["/jobs/:id"], screen: lazy(() => import("./Job")) };
