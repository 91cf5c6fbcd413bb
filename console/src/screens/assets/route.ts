import { lazy } from "react";
import type { Route } from "..";

export const route: Route = { paths: ["/assets"], screen: lazy(() => import("./Assets")) };
