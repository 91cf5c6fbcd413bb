import { useEffect, useState } from "react";
import { Icon } from "@/components/Icon";
import { stateWord } from "@/components/states";
import { useAddresses } from "@/shell/address";
import { useKeys } from "@/shell/keys";
import { CHOICES, type ChoiceName, LABELS } from "./filters";

const WAIT_MILLISECONDS = 250;

export function Filters() {
  const [values, setAddress] = useAddresses();
  useKeys([{ keys: "f", label: "filter", shown: true, run: () => document.getElementById("asset-search")?.focus() }]);
  return (
    <search className="line wrap asset-filters">
      <Search value={values.get("text") ?? ""} onChange={(text) => setAddress({ text: text || null })} />
      {(Object.keys(CHOICES) as ChoiceName[]).map((name) => (
        <select
          key={name}
          className="input"
          aria-label={LABELS[name]}
          value={values.get(name) ?? ""}
          onChange={(event) => setAddress({ [name]: event.target.value || null })}
        >
          <option value="">{LABELS[name]}: all</option>
          {CHOICES[name].map((value) => (
            <option key={value} value={value}>
              {stateWord(value)}
            </option>
          ))}
        </select>
      ))}
      <label className="check small">
        <input
          type="checkbox"
          checked={values.get("deleted") === "true"}
          onChange={(event) => setAddress({ deleted: event.target.checked ? "true" : null })}
        />
        <span>unpublished too</span>
      </label>
    </search>
  );
}

/** Searches a moment after the last letter. */
function Search({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a change of the text starts the wait
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = setTimeout(() => onChange(text.trim()), WAIT_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <span className="search">
      <Icon name="find" />
      <input
        id="asset-search"
        className="input"
        type="search"
        aria-label="Search assets"
        placeholder="Title or identifier"
        maxLength={200}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
    </span>
  );
}
