import { lazy } from "react";
import type { Route } from "..";

export const route: Route = { paths: ["/submit"], screen: lazy(() => import("./Submit")) };
