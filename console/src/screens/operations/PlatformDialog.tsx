import { type FormEvent, useState } from "react";
import { api, ok } from "@/api/client";
import { asProblem } from "@/api/problem";
import type { Platform } from "@/api/schema";
import { Button } from "@/components/Button";
import { ErrorLine } from "@/components/ErrorNote";
import { Field } from "@/components/Field";
import { Dialog } from "@/shell/Dialog";
import { changesOf, newPlatform, type PlatformTexts, textsOf } from "./platformForm";
import { useAction } from "./useAction";

interface TextField {
  name: Exclude<keyof PlatformTexts, "is_active">;
  label: string;
  help?: string;
  needed?: boolean;
}

const IDENTITY: readonly TextField[] = [
  { name: "platform_id", label: "Platform", help: "Lower-case letters, digits and _. It never changes.", needed: true },
  {
    name: "required_refs",
    label: "Identifiers",
    help: "Names of the identifiers that each asset has; the first one groups assets. They never change.",
    needed: true,
  },
];
const CHANGEABLE: readonly TextField[] = [
  { name: "display_name", label: "Name", needed: true },
  { name: "description", label: "Description" },
  { name: "optional_refs", label: "Optional identifiers" },
  { name: "workflows", label: "Workflows", help: "Those that its partners may name. Empty: all for partners." },
  { name: "containers", label: "Containers", help: "From which it may submit, besides its own." },
];

/** A new platform, or the changes of one. A change that somebody else made meanwhile is not overwritten. */
export function PlatformDialog({ platform, onClose }: { platform: Platform | null; onClose: () => void }) {
  const [texts, setTexts] = useState(() => textsOf(platform));
  const save = useAction({
    run: (order: PlatformTexts) =>
      platform
        ? ok(
            api.PATCH("/api/platforms/{platform_id}", {
              params: { path: { platform_id: platform.platform_id } },
              body: changesOf(order, platform),
            }),
          )
        : ok(api.POST("/api/platforms", { body: newPlatform(order) })),
    done: (saved) => (platform ? `${saved.platform_id} is changed.` : `${saved.platform_id} may submit now.`),
    refresh: [["platforms"]],
    tells: true,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(texts, { onSuccess: onClose });
  };
  const problem = save.error ? asProblem(save.error) : null;
  return (
    <Dialog title={platform ? `Edit ${platform.platform_id}` : "New platform"} onClose={onClose}>
      <form className="stack3" onSubmit={submit}>
        {problem && <ErrorLine error={problem} />}
        {[...(platform ? [] : IDENTITY), ...CHANGEABLE].map(({ name, label, help, needed }) => (
          <Field key={name} label={label} help={help} wrong={problem?.of(name)}>
            {(field) => (
              <input
                {...field}
                className={name === "display_name" || name === "description" ? "input" : "input mono"}
                required={needed}
                value={texts[name]}
                onChange={(event) => setTexts({ ...texts, [name]: event.target.value })}
              />
            )}
          </Field>
        ))}
        <label className="check">
          <input
            type="checkbox"
            checked={texts.is_active}
            onChange={(event) => setTexts({ ...texts, is_active: event.target.checked })}
          />
          <span>It may submit</span>
        </label>
        <Button type="submit" kind="primary" disabled={save.isPending}>
          {platform ? "Save" : "Create"}
        </Button>
      </form>
    </Dialog>
  );
}
