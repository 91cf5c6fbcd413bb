import { lazy } from "react";
import type { Route } from "..";

export const route: Route = { paths: ["/review", "/review/:asset"], screen: lazy(() => import("./Review")) };
