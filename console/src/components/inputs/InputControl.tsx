import { useState } from "react";
import { Field } from "@/components/Field";
import { complaint, type InputField, textOf, typedValue } from "./inputs";

/** One input of a workflow. `suggestions` are offered for a text, such as the columns of a file. */
export function InputControl(properties: {
  field: InputField;
  value: unknown;
  onChange: (value: unknown) => void;
  suggestions?: readonly string[];
  wrong?: string;
}) {
  const { field } = properties;
  if (field.kind === "flag") return <Flag {...properties} />;
  const choices = field.kind === "choice" ? field.choices : (properties.suggestions ?? []);
  if (choices.length > 0) return <Choice {...properties} choices={choices} />;
  return <Typed {...properties} />;
}

interface ControlProps {
  field: InputField;
  value: unknown;
  onChange: (value: unknown) => void;
  wrong?: string;
}

function Flag({ field, value, onChange }: ControlProps) {
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={(value ?? field.fallback) === true}
        onChange={(event) => onChange(event.target.checked === (field.fallback === true) ? null : event.target.checked)}
      />
      <span>{field.help ?? <code>{field.name}</code>}</span>
    </label>
  );
}

function Choice({ field, value, onChange, choices, wrong }: ControlProps & { choices: readonly string[] }) {
  const nothing = textOf(field.fallback) || "–";
  return (
    <Field label={<code>{field.name}</code>} help={field.help} wrong={wrong}>
      {(attributes) => (
        <select
          className="input"
          {...attributes}
          value={textOf(value)}
          onChange={(event) => onChange(event.target.value || null)}
        >
          <option value="">{field.required ? "choose" : nothing}</option>
          {choices
            .filter((choice) => choice !== field.fallback)
            .map((choice) => (
              <option key={choice}>{choice}</option>
            ))}
        </select>
      )}
    </Field>
  );
}

function Typed({ field, value, onChange, wrong }: ControlProps) {
  const [text, setText] = useState(() => textOf(value));
  const fits = typedValue(field, text) !== undefined;
  const shown = fits && textOf(value) !== textOf(typedValue(field, text)) ? textOf(value) : text;
  const type = (next: string) => {
    setText(next);
    const read = typedValue(field, next);
    if (read !== undefined) onChange(read);
  };
  return (
    <Field label={<code>{field.name}</code>} help={field.help} wrong={fits ? wrong : complaint(field)}>
      {(attributes) => (
        <input
          className="input mono"
          {...attributes}
          inputMode={field.kind === "number" ? "numeric" : undefined}
          placeholder={textOf(field.fallback)}
          value={shown}
          onChange={(event) => type(event.target.value)}
        />
      )}
    </Field>
  );
}
