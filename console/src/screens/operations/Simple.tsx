import type { ReactNode } from "react";
import { Scrolls } from "@/components/Scrolls";

export interface SimpleColumn<Row> {
  head: string;
  cell: (row: Row) => ReactNode;
  num?: boolean;
  desk?: boolean;
  wraps?: boolean;
}

/** A short table: at most a few hundred rows, all drawn. */
export function SimpleTable<Row>({
  label,
  rows,
  columns,
  rowKey,
}: {
  label: string;
  rows: readonly Row[];
  columns: readonly SimpleColumn<Row>[];
  rowKey: (row: Row) => string;
}) {
  const classOf = (column: SimpleColumn<Row>) =>
    [column.num && "num", column.desk && "desk", column.wraps && "wraps"].filter(Boolean).join(" ") || undefined;
  return (
    <Scrolls className="sheet-table" label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} className={classOf(column)}>
                {column.head || <span className="hidden">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => (
                <td key={column.head} className={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolls>
  );
}
