import { lazy } from "react";
import type { Route } from "..";

export const route: Route = { paths: ["/jobs"], screen: lazy(() => import("./Jobs")) };
