import { type ReactNode, useId } from "react";

interface FieldAttributes {
  id: string;
  "aria-invalid": boolean | undefined;
  "aria-describedby": string | undefined;
}

/** A labelled field with help, and what is wrong with its value. The child gets the attributes that tie them together. */
export function Field(properties: {
  label: ReactNode;
  aside?: ReactNode;
  help?: ReactNode;
  wrong?: ReactNode;
  children: (attributes: FieldAttributes) => ReactNode;
}) {
  const id = useId();
  const { help, wrong } = properties;
  const described = [help && `${id}-help`, wrong && `${id}-wrong`].filter(Boolean).join(" ") || undefined;
  return (
    <div className="field">
      <label htmlFor={id}>
        <span>{properties.label}</span>
        {properties.aside}
      </label>
      {properties.children({ id, "aria-invalid": wrong ? true : undefined, "aria-describedby": described })}
      {wrong && (
        <span id={`${id}-wrong`} className="wrong" role="alert">
          {wrong}
        </span>
      )}
      {help && (
        <span id={`${id}-help`} className="help">
          {help}
        </span>
      )}
    </div>
  );
}
