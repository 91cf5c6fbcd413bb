import { lazy } from "react";
import type { Route } from "..";

export const route: Route = { paths: ["/overview"], screen: lazy(() => import("./Overview")) };
