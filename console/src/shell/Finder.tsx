/** Find: an asset by words, a job or a request by its id. Enter opens the first. */

import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useDeferredValue, useState } from "react";
import { useLocation } from "wouter";
import { api, ok } from "@/api/client";
import { Glyph } from "@/components/states";
import { shortId } from "@/format/number";
import { Dialog } from "./Dialog";
import { useMay } from "./session";

interface Hit {
  href: string;
  text: string;
  kind: string;
  state?: string;
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{1,12}){0,4}$|^[0-9a-f]{16,64}$/i;
const SHORTEST = 2;

export function Finder({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [place, setPlace] = useState(0);
  const words = useDeferredValue(text.trim());
  const [, navigate] = useLocation();
  const hits = useHits(words);
  const open = (hit: Hit | undefined) => {
    if (!hit) return;
    navigate(hit.href);
    onClose();
  };
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setPlace((at) => Math.min(Math.max(0, at + step), Math.max(0, hits.length - 1)));
    if (event.key === "Enter") open(hits[place]);
    if (step) event.preventDefault();
  };
  return (
    <Dialog label="Find" className="finder" onClose={onClose}>
      <input
        autoFocus
        role="combobox"
        aria-expanded={hits.length > 0}
        aria-controls="find-results"
        aria-activedescendant={hits.length > 0 ? `find-${place}` : undefined}
        aria-label="Find asset, job, request"
        placeholder="Words of an asset, or the id of a job or request"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setPlace(0);
        }}
        onKeyDown={pressed}
      />
      {words.length >= SHORTEST && (
        <div id="find-results" className="results" role="listbox" aria-label="Results">
          {hits.length === 0 && <p className="empty small">Nothing is called so.</p>}
          {hits.map((hit, at) => (
            <a
              key={hit.href}
              id={`find-${at}`}
              role="option"
              tabIndex={-1}
              aria-selected={at === place}
              href={`/console${hit.href}`}
              onClick={(event) => {
                event.preventDefault();
                open(hit);
              }}
            >
              {hit.state && <Glyph state={hit.state} />}
              <span className="grow cut">{hit.text}</span>
              <span className="dim small">{hit.kind}</span>
            </a>
          ))}
        </div>
      )}
    </Dialog>
  );
}

function useHits(words: string): Hit[] {
  const may = useMay();
  const assets = useQuery({
    queryKey: ["find", "assets", words],
    queryFn: ({ signal }) => ok(api.GET("/api/assets", { params: { query: { text: words, limit: 8 } }, signal })),
    enabled: words.length >= SHORTEST && may("GET /api/assets"),
    placeholderData: (earlier) => earlier,
  });
  const isId = ID.test(words);
  const standing = useQuery({
    queryKey: ["find", "status", words],
    queryFn: ({ signal }) =>
      ok(api.GET("/api/platform/status/{identifier}", { params: { path: { identifier: words } }, signal })),
    enabled: isId,
    retry: false,
  });
  if (words.length < SHORTEST) return [];
  const byId: Hit[] = [];
  if (isId && standing.data && "asset_id" in standing.data) {
    byId.push({ href: `/assets/${standing.data.asset_id}`, text: standing.data.asset_id, kind: "asset" });
  }
  if (isId && standing.data?.job_id && may("GET /api/v1/jobs/{job_id}"))
    byId.push({
      href: `/jobs/${standing.data.job_id}`,
      text: shortId(standing.data.job_id),
      kind: "job",
      state: standing.data.status,
    });
  const byWords = (assets.data?.assets ?? []).map((asset) => ({
    href: `/assets/${asset.asset_id}`,
    text: asset.stac_item_id,
    kind: `asset, ${asset.data_type}`,
    state: asset.approval_state,
  }));
  return [...byId, ...byWords];
}
