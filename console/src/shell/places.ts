/** The places of the bar, in their order. A place is shown to those who may use it. */

import type { Rule } from "@/api/client";

export interface Place {
  name: string;
  href: string;
  /** The second key after `g`. */
  key: string;
  rule: Rule;
  /** Addresses within it that need the same rule. */
  inner?: readonly string[];
}

export const PLACES: readonly Place[] = [
  { name: "Overview", href: "/overview", key: "o", rule: "GET /health" },
  { name: "Submit", href: "/submit", key: "s", rule: "POST /api/platform/submit" },
  { name: "Review", href: "/review", key: "r", rule: "POST /api/platform/approve", inner: ["/review/:asset"] },
  { name: "Assets", href: "/assets", key: "a", rule: "GET /api/assets" },
  { name: "Jobs", href: "/jobs", key: "j", rule: "GET /api/v1/jobs" },
  { name: "Workflows", href: "/workflows", key: "w", rule: "GET /api/v1/workflows" },
  { name: "Operations", href: "/operations", key: "p", rule: "GET /api/v1/queues" },
];
