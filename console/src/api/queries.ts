/** The cache of what the gateway answered. */

import { QueryClient } from "@tanstack/react-query";
import { api, ok } from "./client";
import { asProblem } from "./problem";

const MOST_RETRIES = 2;

export function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        gcTime: 300_000,
        retry: (failures, error) => asProblem(error).passes && failures < MOST_RETRIES,
        refetchOnWindowFocus: true,
      },
      mutations: { retry: false },
    },
  });
}

export const SESSION_KEY = ["session"] as const;

export function readSession() {
  return ok(api.GET("/api/v1/session"));
}

export type SessionDocument = Awaited<ReturnType<typeof readSession>>;
export type CallerDocument = NonNullable<SessionDocument["caller"]>;
