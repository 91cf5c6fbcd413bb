/** The features of a vector as a table, a page at a time. A row opens its feature on the map. */

import { useInfiniteQuery } from "@tanstack/react-query";
import type { Feature, FeatureCollection } from "geojson";
import { type FormEvent, useState } from "react";
import type { AssetDetails } from "@/api/schema";
import { readService } from "@/api/services";
import { Button, Segments } from "@/components/Button";
import { Empty } from "@/components/Empty";
import { ErrorLine } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { type Column, Table } from "@/components/Table";
import { count } from "@/format/number";
import { columnsOf } from "@/map/outputs";
import { useAddresses } from "@/shell/address";
import { cellText } from "./AssetMap";
import type { MapState } from "./mapState";

type Page = FeatureCollection & { numberMatched: number };

const PAGE = 100;

export function Attributes({
  asset,
  names,
  state,
}: {
  asset: AssetDetails;
  names: readonly string[];
  state: MapState;
}) {
  const [values, setAddress] = useAddresses();
  const part = names[Number(values.get("layer") ?? 0)] ?? names[0] ?? asset.asset_id;
  const sort = values.get("sort") ?? "";
  const filter = values.get("filter") ?? "";
  const pages = useInfiniteQuery({
    queryKey: ["features", part, asset.served_revision, sort, filter],
    queryFn: ({ pageParam, signal }) => {
      const query = new URLSearchParams({ limit: String(PAGE), offset: String(pageParam), "geom-column": "none" });
      if (sort) query.set("sortby", sort);
      if (filter) {
        query.set("filter", filter);
        query.set("filter-lang", "cql2-text");
      }
      return readService<Page>(`/vector/collections/${encodeURIComponent(part)}/items?${query}`, signal);
    },
    initialPageParam: 0,
    getNextPageParam: (last, all) => {
      const loaded = all.reduce((sum, page) => sum + page.features.length, 0);
      return last.features.length > 0 && loaded < last.numberMatched ? loaded : undefined;
    },
  });
  const rows = pages.data?.pages.flatMap((page) => page.features) ?? [];
  const total = pages.data?.pages[0]?.numberMatched ?? 0;
  const known = columnsOf(asset.outputs).map((column) => column.name);
  const head = known.length > 0 && part === names[0] ? known : Object.keys(rows[0]?.properties ?? {});
  const numeric = new Set(head.filter((name) => rows.some((row) => typeof row.properties?.[name] === "number")));
  const columns: Column<Feature>[] = head.map((name) => ({
    name,
    head: name,
    num: numeric.has(name),
    cell: (feature) => cellText(feature.properties?.[name]),
    sort: {
      direction: sort === name ? "ascending" : sort === `-${name}` ? "descending" : null,
      onSort: () => setAddress({ sort: sort === name ? `-${name}` : sort === `-${name}` ? null : name }),
    },
  }));
  return (
    <div className="attributes">
      <div className="line">
        {names.length > 1 && (
          <Segments
            label="Layer"
            options={names.map((name, place) => ({ value: String(place), label: name.split(".")[1] ?? "main" }))}
            value={String(names.indexOf(part))}
            onChange={(value) => setAddress({ layer: value === "0" ? null : value })}
          />
        )}
        <Filter
          key={filter}
          value={filter}
          example={head[1] ?? "name"}
          onChange={(value) => setAddress({ filter: value || null })}
        />
        <span className="small dim" role="status">
          {pages.data && (filter ? `${count(total)} match` : `${count(total)} features`)}
        </span>
      </div>
      {pages.error ? <ErrorLine error={pages.error} /> : null}
      {pages.isPending ? (
        <Loading lines={5} />
      ) : (
        <Table
          label="Features"
          rows={rows}
          total={total}
          columns={columns}
          rowKey={(feature) => String(feature.id)}
          opened={state.chosen?.name === part ? state.chosen.id : null}
          onOpen={(feature) => state.choose({ name: part, id: String(feature.id) }, true)}
          onEnd={() => {
            if (pages.hasNextPage && !pages.isFetchingNextPage) void pages.fetchNextPage();
          }}
          empty={pages.error ? undefined : <Empty icon="find" title={filter ? "No feature matches" : "No features"} />}
        />
      )}
    </div>
  );
}

function Filter({ value, example, onChange }: { value: string; example: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  const apply = (event: FormEvent) => {
    event.preventDefault();
    onChange(text.trim());
  };
  return (
    <form className="line grow" onSubmit={apply}>
      <input
        className="input mono"
        aria-label="Filter of features, as CQL2"
        placeholder={`${example} LIKE 'a%'`}
        spellCheck={false}
        maxLength={5000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {(text.trim() !== value || value) && (
        <Button
          type="submit"
          icon={text.trim() === value ? "close" : "filter"}
          onClick={() => text.trim() === value && setText("")}
        >
          {text.trim() === value ? "Clear" : "Filter"}
        </Button>
      )}
    </form>
  );
}
