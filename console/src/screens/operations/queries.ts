/** What operators look at, read again every few seconds while it is shown. */

import { useQuery } from "@tanstack/react-query";
import { api, ok } from "@/api/client";

const SECONDS = 5_000;

export const QUEUES_KEY = ["queues"] as const;
export const LETTERS_KEY = ["dead-letters"] as const;
export const PARKED_KEY = ["parked"] as const;
export const CALLBACKS_KEY = ["callbacks"] as const;
export const KEYS_KEY = ["keys"] as const;
export const CIRCUITS_KEY = ["circuits"] as const;

export function useQueues() {
  return useQuery({ queryKey: QUEUES_KEY, queryFn: () => ok(api.GET("/api/v1/queues")), refetchInterval: SECONDS });
}

export function useInstances() {
  return useQuery({
    queryKey: ["instances"],
    queryFn: () => ok(api.GET("/api/v1/instances")),
    refetchInterval: SECONDS,
  });
}

export const PLATFORMS_KEY = ["platforms", "all"] as const;
