import { useMemo } from "react";
import { Button, Segments } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { State, stateWord } from "@/components/states";
import { type Column, Table } from "@/components/Table";
import { count } from "@/format/number";
import { clock, duration } from "@/format/time";
import { useAddress } from "@/shell/address";
import {
  FEW_FAILED,
  type ItemShow,
  type ItemSummary,
  type ItemView,
  MOST_LIVE_PAGES,
  type NodeView,
  useItems,
} from "./data";
import { FindItem } from "./FindItem";

const INDEX = { name: "index", head: "Item", width: 64 };
const COLUMNS: readonly Column<ItemView>[] = [
  { name: "state", head: "State", width: 104, cell: (item) => <State state={item.status} /> },
  { name: "attempt", head: "Try", width: 40, cell: (item) => item.attempt },
  { name: "code", head: "Code", width: 110, desk: true, cell: (item) => <code>{item.error_code}</code> },
  { name: "what", head: "What", cut: true, cell: (item) => <span className="soft">{item.error ?? item.message}</span> },
  {
    name: "wait",
    head: "Waited",
    num: true,
    width: 76,
    desk: true,
    cell: (item) => <Seconds value={item.wait_seconds} dim />,
  },
  { name: "run", head: "Ran", num: true, width: 84, cell: (item) => <Seconds value={item.run_seconds} /> },
];

function Seconds({ value, dim }: { value: number | null | undefined; dim?: boolean }) {
  return (
    <span className={dim ? "dim" : undefined}>{value === null || value === undefined ? "" : duration(value)}</span>
  );
}

interface ItemsProps {
  jobId: string;
  node: NodeView;
  summary: ItemSummary | undefined;
  opened: number | null;
  onOpen: (index: number) => void;
  onRetryFailed?: () => void;
}

/** The items of a fan-out: the failed ones first and then the slowest, or those of one state, or all. */
export function Items(properties: ItemsProps) {
  const { node, summary } = properties;
  const [show, setShow] = useAddress<ItemShow>("show", "first");
  const total = summary?.total ?? node.items?.total ?? 0;
  const failed = summary?.states.failed ?? node.items?.failed ?? 0;
  return (
    <>
      <header className="part">
        <h2 className="cut">Items of {node.node_id}</h2>
        <span className="small soft grow cut desk">
          {count(total)}
          {show === "first" ? ", failed first, then slowest" : ""}
        </span>
        <FindItem total={total} onOpen={properties.onOpen} />
        <ShowChoice show={show} states={summary?.states ?? {}} onChange={setShow} />
        {failed > 0 && node.status !== "completed" && properties.onRetryFailed && (
          <Button icon="retry" onClick={properties.onRetryFailed}>
            Retry {count(failed)} failed
          </Button>
        )}
      </header>
      {show === "first" ? (
        <FirstItems {...properties} onMore={() => setShow("failed")} />
      ) : (
        <ItemPages {...properties} show={show} />
      )}
    </>
  );
}

const STATES: readonly Exclude<ItemShow, "first" | "slowest" | "all">[] = [
  "failed",
  "running",
  "dispatched",
  "completed",
];

function ShowChoice(properties: {
  show: ItemShow;
  states: Record<string, number>;
  onChange: (show: ItemShow) => void;
}) {
  const { show, states } = properties;
  const options: { value: ItemShow; label: string }[] = [
    { value: "first", label: "Worth a look" },
    ...STATES.filter((state) => states[state] || state === show).map((state) => ({
      value: state,
      label: stateWord(state),
    })),
    { value: "slowest", label: "slowest" },
    { value: "all", label: "all" },
  ];
  return <Segments label="Which items" options={options} value={show} onChange={properties.onChange} />;
}

const NONE = <Empty title="No item has ended yet">Items appear here when the first of them fails or completes.</Empty>;

function FirstItems(properties: ItemsProps & { onMore: () => void }) {
  const { jobId, node, summary } = properties;
  const failed = useItems(jobId, node.node_id, "failed", FEW_FAILED);
  const running = useItems(jobId, node.node_id, "running", 5);
  const slowest = useItems(jobId, node.node_id, "slowest", 20);
  if (failed.error && !failed.data) return <ErrorNote error={failed.error} onRetry={() => void failed.refetch()} />;
  if (!failed.data || !running.data || !slowest.data) return <Loading lines={6} />;
  const rows = unique([failed, running, slowest].flatMap((query) => query.data?.pages[0]?.items ?? []));
  const more = (summary?.states.failed ?? 0) - FEW_FAILED;
  return (
    <>
      <ItemTable {...properties} rows={rows} empty={NONE} />
      {more > 0 && (
        <button type="button" className="link more-failed small" onClick={properties.onMore}>
          Show {count(more)} more failed items
        </button>
      )}
    </>
  );
}

function unique(items: readonly ItemView[]): ItemView[] {
  return [...new Map(items.map((item) => [item.index, item])).values()];
}

function ItemPages(properties: ItemsProps & { show: Exclude<ItemShow, "first"> }) {
  const query = useItems(properties.jobId, properties.node.node_id, properties.show);
  if (query.error && !query.data) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />;
  if (!query.data) return <Loading lines={6} />;
  const rows = query.data.pages.flatMap((page) => page.items);
  return (
    <>
      {query.data.pages.length > MOST_LIVE_PAGES && (
        <div className="part small soft">
          <span className="grow">
            As of {clock(query.dataUpdatedAt)}: a list this long is not read again by itself.
          </span>
          <Button kind="quiet" icon="retry" onClick={() => void query.refetch()}>
            Read again
          </Button>
        </div>
      )}
      <ItemTable
        {...properties}
        rows={rows}
        total={properties.show === "all" ? properties.summary?.total : undefined}
        onEnd={() => {
          if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
        }}
        empty={<Empty title="There are none">No item is in this state now.</Empty>}
      />
    </>
  );
}

function ItemTable(properties: {
  node: NodeView;
  rows: readonly ItemView[];
  opened: number | null;
  onOpen: (index: number) => void;
  total?: number;
  onEnd?: () => void;
  empty: React.ReactNode;
}) {
  const { onOpen } = properties;
  const columns = useMemo(() => {
    const cell = (item: ItemView) => (
      <button type="button" className="link" aria-label={`Open item ${item.index}`} onClick={() => onOpen(item.index)}>
        <code>{item.index}</code>
      </button>
    );
    return [{ ...INDEX, cell }, ...COLUMNS];
  }, [onOpen]);
  return (
    <Table
      label={`Items of ${properties.node.node_id}`}
      rows={properties.rows}
      columns={columns}
      rowKey={(item) => String(item.index)}
      opened={properties.opened === null ? null : String(properties.opened)}
      onOpen={(item) => onOpen(item.index)}
      total={properties.total}
      onEnd={properties.onEnd}
      empty={properties.empty}
      keys={false}
    />
  );
}
