import { Field } from "@/components/Field";
import { type InputDeclaration, isRequired, textOf } from "./inputs";

interface InputFieldsProps {
  inputs: Record<string, InputDeclaration>;
  texts: Record<string, string>;
  onChange: (texts: Record<string, string>) => void;
  wrong: (name: string) => string | undefined;
}

/** A field for each input that a workflow declares, those that it needs first. */
export function InputFields({ inputs, texts, onChange, wrong }: InputFieldsProps) {
  return requiredFirst(inputs).map(([name, declaration]) => {
    const set = (event: { target: { value: string } }) => onChange({ ...texts, [name]: event.target.value });
    return (
      <Field
        key={name}
        label={name}
        aside={
          <span className="dim">{isRequired(declaration) ? `${declaration.type}, required` : declaration.type}</span>
        }
        help={declaration.description}
        wrong={wrong(name)}
      >
        {(field) =>
          declaration.type === "boolean" || declaration.enum ? (
            <select {...field} className="input" value={texts[name] ?? ""} onChange={set}>
              <option value="">{declaration.default == null ? "" : `default: ${textOf(declaration.default)}`}</option>
              {(declaration.enum ?? [true, false]).map((choice) => (
                <option key={textOf(choice)} value={textOf(choice)}>
                  {textOf(choice)}
                </option>
              ))}
            </select>
          ) : (
            <input
              {...field}
              className="input mono"
              placeholder={declaration.default == null ? "" : textOf(declaration.default)}
              value={texts[name] ?? ""}
              onChange={set}
            />
          )
        }
      </Field>
    );
  });
}

function requiredFirst(inputs: Record<string, InputDeclaration>): [string, InputDeclaration][] {
  return Object.entries(inputs).sort(([, one], [, other]) => Number(isRequired(other)) - Number(isRequired(one)));
}
