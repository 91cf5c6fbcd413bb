import { lazy } from "react";
import type { Route } from "..";

export const route: Route = { paths: ["/components"], screen: lazy(() => import("./Gallery")) };
