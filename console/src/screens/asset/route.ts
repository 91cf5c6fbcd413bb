import { lazy } from "react";
import type { Route } from "..";

export const route: Route = { paths: ["/assets/:id"], screen: lazy(() => import("./Asset")) };
