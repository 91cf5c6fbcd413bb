import { type FormEvent, useState } from "react";
import { count } from "@/format/number";
import { itemNumber } from "./itemNumber";

/** Opens the item whose number is typed. */
export function FindItem({ total, onOpen }: { total: number; onOpen: (index: number) => void }) {
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const index = itemNumber(text, total);
    setWrong(index === null);
    if (index !== null) onOpen(index);
  };
  return (
    <form className="line find-item" onSubmit={submit}>
      <input
        className="input mono"
        inputMode="numeric"
        aria-label="Find an item by its number"
        aria-invalid={wrong || undefined}
        placeholder="item"
        title={`A number from 0 to ${count(Math.max(0, total - 1))}`}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setWrong(false);
        }}
      />
      {wrong && (
        <span className="small bad-ink" role="alert">
          0 to {count(Math.max(0, total - 1))}
        </span>
      )}
    </form>
  );
}
