import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { useLocation } from "wouter";
import { api, ok } from "@/api/client";
import { Icon } from "@/components/Icon";
import { moment } from "@/format/time";
import { useAddresses } from "@/shell/address";
import { useKeys } from "@/shell/keys";
import { type JobFilters, TEXTS, typed, WORDS } from "./filters";

const FLAGS = ["parked", "paused"] as const;

/** The filters as tokens, and a field for more. */
export function Query({ filters }: { filters: JobFilters }) {
  const [, change] = useAddresses();
  const [, navigate] = useLocation();
  const [text, setText] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const workflows = useQuery({
    queryKey: ["workflows"],
    queryFn: () => ok(api.GET("/api/v1/workflows")),
    staleTime: 60_000,
  });
  const names = workflows.data?.map((workflow) => workflow.workflow_id) ?? [];
  useKeys([{ keys: "f", label: "filter", shown: true, run: () => field.current?.focus() }]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const filter = typed(text, names);
    if (!filter) return;
    setText("");
    if ("job" in filter) navigate(`/jobs/${filter.job}`);
    else change(filter as Record<string, string>);
  };
  return (
    <form className="query" onSubmit={submit}>
      <div className="box">
        <Icon name="find" />
        {TEXTS.filter((name) => filters[name]).map((name) => (
          <Token key={name} name={WORDS[name]} value={filters[name] ?? ""} onRemove={() => change({ [name]: null })} />
        ))}
        {filters.created_from && (
          <Token
            name="created since"
            value={moment(filters.created_from)}
            onRemove={() => change({ created_from: null })}
          />
        )}
        {filters.created_to && (
          <Token name="before" value={moment(filters.created_to)} onRemove={() => change({ created_to: null })} />
        )}
        {FLAGS.filter((name) => filters[name] !== undefined).map((name) => (
          <Token
            key={name}
            name=""
            value={filters[name] ? name : `not ${name}`}
            onRemove={() => change({ [name]: null })}
          />
        ))}
        <input
          ref={field}
          aria-label="Filter jobs"
          placeholder="Type to filter: workflow, asset:…, by:…, error text, id"
          value={text}
          list="job-workflows"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => event.key === "Escape" && field.current?.blur()}
        />
        <kbd>F</kbd>
        <datalist id="job-workflows">
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </div>
    </form>
  );
}

function Token({ name, value, onRemove }: { name: string; value: string; onRemove: () => void }) {
  return (
    <span className="token">
      <span className="soft">{name}</span> {value}
      <button type="button" aria-label={`Remove the filter ${name} ${value}`} onClick={onRemove}>
        <Icon name="close" />
      </button>
    </span>
  );
}
