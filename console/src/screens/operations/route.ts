import { lazy } from "react";
import type { Route } from "..";

export const route: Route = { paths: ["/operations"], screen: lazy(() => import("./Operations")) };
