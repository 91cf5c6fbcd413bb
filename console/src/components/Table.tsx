/** A table of any length: only the rows in sight are drawn. Arrows move, Enter opens, X selects, Shift+X selects a range.
 * Order and rows never change by themselves: the screen decides when new rows come in. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useRef, useState } from "react";
import { type KeyBinding, useKeys } from "@/shell/keys";

export interface Column<Row> {
  name: string;
  head: ReactNode;
  cell: (row: Row) => ReactNode;
  /** Figures are aligned right. */
  num?: boolean;
  width?: number | string;
  /** The text is cut when the column is too narrow. */
  cut?: boolean;
  /** Left out on phones. */
  desk?: boolean;
  sort?: { direction: "ascending" | "descending" | null; onSort: () => void };
}

interface TableProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  rowHeight?: number;
  /** The number of all rows, if not all are loaded. */
  total?: number;
  onOpen?: (row: Row) => void;
  opened?: string | null;
  selection?: { selected: ReadonlySet<string>; onChange: (selected: Set<string>) => void; label: (row: Row) => string };
  /** Called when the last loaded row comes into sight. */
  onEnd?: () => void;
  /** What is shown instead of rows when there are none. */
  empty?: ReactNode;
  /** Whether arrows and Enter belong to the table. A screen that uses them for something else says no. */
  keys?: boolean;
}

const OVERSCAN = 12;

export function Table<Row>(properties: TableProps<Row>) {
  const { rows, rowKey, onOpen, selection } = properties;
  const scroller = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState<string | null>(null);
  const anchor = useRef<number | null>(null);
  const height = properties.rowHeight ?? rowHeight();
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: OVERSCAN,
    getItemKey: (place) => rowKey(rows[place] as Row),
    onChange: (instance) => {
      const last = instance.getVirtualItems().at(-1);
      if (last && last.index >= rows.length - 1) properties.onEnd?.();
    },
  });

  const place = active === null ? -1 : rows.findIndex((row) => rowKey(row) === active);
  const move = (step: number) => {
    const next = Math.min(rows.length - 1, Math.max(0, place + step));
    const row = rows[next];
    if (!row) return;
    setActive(rowKey(row));
    virtual.scrollToIndex(next, { align: "auto" });
  };
  const toggle = (row: Row, at: number, range: boolean) => {
    if (!selection) return;
    const selected = new Set(selection.selected);
    const from = range && anchor.current !== null ? anchor.current : at;
    const adds = range || !selected.has(rowKey(row));
    for (let index = Math.min(from, at); index <= Math.max(from, at); index += 1) {
      const key = rows[index] === undefined ? null : rowKey(rows[index] as Row);
      if (key !== null && adds) selected.add(key);
      else if (key !== null) selected.delete(key);
    }
    anchor.current = at;
    selection.onChange(selected);
  };
  const activeRow = rows[place];
  const keys: KeyBinding[] = [
    { keys: "ArrowDown", label: "next row", run: () => move(1) },
    { keys: "ArrowUp", label: "previous row", run: () => move(-1) },
    ...(onOpen ? [{ keys: "Enter", label: "open the row", run: () => activeRow && onOpen(activeRow) }] : []),
    ...(selection
      ? [
          { keys: "x", label: "select the row", run: () => activeRow && toggle(activeRow, place, false) },
          { keys: "Shift+X", label: "select up to the row", run: () => activeRow && toggle(activeRow, place, true) },
        ]
      : []),
  ];
  useKeys(properties.keys === false ? [] : keys);

  const items = virtual.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const allSelected =
    selection !== undefined && rows.length > 0 && rows.every((row) => selection.selected.has(rowKey(row)));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keys
    <section className="table" ref={scroller} tabIndex={0} aria-label={properties.label}>
      <table aria-rowcount={(properties.total ?? rows.length) + 1}>
        <thead>
          <tr>
            {selection && (
              <th style={{ width: 30 }}>
                <input
                  type="checkbox"
                  aria-label="Select all that are loaded"
                  checked={allSelected}
                  onChange={() => selection.onChange(allSelected ? new Set() : new Set(rows.map(rowKey)))}
                />
              </th>
            )}
            {properties.columns.map((column) => (
              <Head key={column.name} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer height={before} />
          {items.map((item) => {
            const row = rows[item.index] as Row;
            const key = rowKey(row);
            return (
              <tr
                key={key}
                aria-rowindex={item.index + 2}
                aria-selected={selection?.selected.has(key) || properties.opened === key || undefined}
                className={[key === active && "active", onOpen && "openable"].filter(Boolean).join(" ") || undefined}
                style={{ height }}
                onClick={(event) => {
                  setActive(key);
                  if (!(event.target instanceof Element && event.target.closest("a, button, input, label")))
                    onOpen?.(row);
                }}
              >
                {selection && (
                  <td>
                    <input
                      type="checkbox"
                      aria-label={selection.label(row)}
                      checked={selection.selected.has(key)}
                      onChange={(event) => toggle(row, item.index, (event.nativeEvent as MouseEvent).shiftKey)}
                    />
                  </td>
                )}
                {properties.columns.map((column) => (
                  <td key={column.name} className={cellClass(column)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          <Spacer height={after} />
        </tbody>
      </table>
      {rows.length === 0 && properties.empty}
    </section>
  );
}

function Head<Row>({ column }: { column: Column<Row> }) {
  const { sort } = column;
  const arrow = sort?.direction === "ascending" ? " ↑" : sort?.direction === "descending" ? " ↓" : "";
  return (
    <th className={cellClass(column)} style={{ width: column.width }} aria-sort={sort?.direction ?? undefined}>
      {sort ? (
        <button type="button" className="sort" onClick={sort.onSort}>
          {column.head}
          {arrow}
        </button>
      ) : (
        column.head
      )}
    </th>
  );
}

function Spacer({ height }: { height: number }) {
  if (height <= 0) return null;
  return (
    <tr className="spacer" aria-hidden="true">
      <td style={{ height }} />
    </tr>
  );
}

function cellClass<Row>(column: Column<Row>): string | undefined {
  return [column.num && "num", column.cut && "cut", column.desk && "desk"].filter(Boolean).join(" ") || undefined;
}

function rowHeight(): number {
  if (matchMedia("(pointer: coarse)").matches) return 44;
  return matchMedia("(min-width: 2560px)").matches ? 33 : 26;
}
