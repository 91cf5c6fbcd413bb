/** Jobs: query, states with counts, jobs over time, table, actions for the selection. */

import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { api, ok } from "@/api/client";
import { Button, ButtonLink } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { Loaded } from "@/components/Loading";
import { Table } from "@/components/Table";
import { count, plural } from "@/format/number";
import { ZONE } from "@/format/time";
import { useLive } from "@/live";
import { useAddresses } from "@/shell/address";
import { useKeys } from "@/shell/keys";
import { Screen } from "@/shell/Screen";
import { useMay } from "@/shell/session";
import { Bulk } from "./Bulk";
import { COLUMNS } from "./columns";
import { filtersOf } from "./filters";
import { patchJobs } from "./live";
import { Query } from "./Query";
import { States } from "./States";
import { When } from "./When";
import "./jobs.css";

const PAGE = 200;
/** How many pages without a match are read by themselves. Each looks at 10,000 jobs of each state. */
const MOST_EMPTY_PAGES = 10;
const ACTIVE = ["queued", "pending", "running"] as const;

export default function Jobs() {
  const may = useMay();
  const [, navigate] = useLocation();
  const [address] = useAddresses();
  const text = address.toString();
  const filters = useMemo(() => filtersOf(new URLSearchParams(text)), [text]);
  const key = useMemo(() => ["jobs", "list", filters], [filters]);
  const list = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) =>
      ok(
        api.GET("/api/v1/jobs", {
          params: { query: { ...filters, limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const counts = useQuery({
    queryKey: ["jobs", "counts", filters],
    queryFn: () => ok(api.GET("/api/v1/jobs/counts", { params: { query: { ...filters, status: [] } } })),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  });
  const [unseen, setUnseen] = useState<Set<string>>(new Set());
  const [selected, setSelected] = useState<Set<string>>(new Set());
  // biome-ignore lint/correctness/useExhaustiveDependencies: another list has no new rows and no selection
  useEffect(() => {
    setUnseen(new Set());
    setSelected(new Set());
  }, [key]);
  useLive("jobs", {
    refresh: [key],
    patch: (client, events) => {
      const unknown = patchJobs(client, key, events);
      if (unknown.length > 0) setUnseen((earlier) => new Set([...earlier, ...unknown]));
    },
  });
  // A page of rare matches may be empty although there are more.
  const { fetchNextPage } = list;
  const goesOn = list.hasNextPage && !list.isFetchingNextPage && (list.data?.pages.length ?? 0) < MOST_EMPTY_PAGES;
  const empty = list.data?.pages.every((page) => page.jobs.length === 0) ?? false;
  useEffect(() => {
    if (empty && goesOn) void fetchNextPage();
  }, [empty, goesOn, fetchNextPage]);
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.jobs) ?? [], [list.data]);
  const active = ACTIVE.reduce((sum, state) => sum + (counts.data?.counts[state] ?? 0), 0);
  const all = Object.values(counts.data?.counts ?? {}).reduce((sum, value) => sum + value, 0);
  const showNew = () => {
    setUnseen(new Set());
    void list.refetch();
  };
  useKeys([{ keys: "n", label: "show new jobs", run: showNew }]);
  return (
    <Screen
      title="Jobs"
      fills
      beside={
        <span className="small soft">
          {count(all)}
          {(counts.data?.at_least.length ?? 0) > 0 ? "+" : ""}, {count(active)} active
        </span>
      }
      actions={
        may("POST /api/v1/jobs") && (
          <ButtonLink kind="primary" href="/workflows">
            Run a workflow
          </ButtonLink>
        )
      }
      status={[`${plural(rows.length, "row")} loaded`, `times in ${ZONE}, UTC on hover`]}
    >
      <div className="jobs">
        <Query filters={filters} />
        <States counts={counts.data?.counts ?? {}} atLeast={counts.data?.at_least ?? []} filters={filters} />
        <When filters={filters} />
        {unseen.size > 0 && (
          <button type="button" className="news" onClick={showNew}>
            {plural(unseen.size, "job has", "jobs have")} come or changed outside of this list. Show
          </button>
        )}
        <Loaded query={list} lines={12}>
          {() => (
            <Table
              label="Jobs"
              rows={rows}
              columns={COLUMNS}
              rowKey={(job) => job.job_id}
              onOpen={(job) => navigate(`/jobs/${job.job_id}`)}
              onEnd={() => list.hasNextPage && !list.isFetchingNextPage && void list.fetchNextPage()}
              selection={
                may("POST /api/v1/jobs/{job_id}/cancel")
                  ? { selected, onChange: setSelected, label: (job) => `Select the job ${job.job_id}` }
                  : undefined
              }
              empty={
                list.hasNextPage ? (
                  <Searching
                    back={list.data?.pages.length ?? 0}
                    searching={list.isFetchingNextPage}
                    onMore={() => void list.fetchNextPage()}
                  />
                ) : (
                  <NoJobs filtered={text !== ""} />
                )
              }
            />
          )}
        </Loaded>
        {selected.size > 0 && (
          <Bulk
            selected={rows.filter((job) => selected.has(job.job_id))}
            filters={filters}
            counts={counts.data?.counts ?? {}}
            atLeast={counts.data?.at_least ?? []}
            onDone={() => setSelected(new Set())}
          />
        )}
      </div>
    </Screen>
  );
}

/** Matches are rare: nothing was found so far, and there are older jobs. */
function Searching({ back, searching, onMore }: { back: number; searching: boolean; onMore: () => void }) {
  if (searching || back < MOST_EMPTY_PAGES) return <Empty icon="find" title="Looking through older jobs" />;
  return (
    <Empty
      icon="find"
      title="None of the newest jobs passes these filters"
      action={<Button onClick={onMore}>Look further back</Button>}
    >
      A shorter time or a workflow makes the search quicker.
    </Empty>
  );
}

function NoJobs({ filtered }: { filtered: boolean }) {
  const [, navigate] = useLocation();
  const may = useMay();
  if (filtered) {
    return (
      <Empty
        icon="filter"
        title="No job passes these filters"
        action={<Button onClick={() => navigate("/jobs")}>Take them away</Button>}
      >
        Jobs that come later and pass them appear here when you ask.
      </Empty>
    );
  }
  return (
    <Empty
      icon="play"
      title="No job has run yet"
      action={may("POST /api/v1/jobs") && <ButtonLink href="/workflows">Run a workflow</ButtonLink>}
    >
      Submissions and workflows start jobs.
    </Empty>
  );
}
