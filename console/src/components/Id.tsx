import { shortId } from "@/format/number";
import { useToast } from "@/shell/toasts";
import { Button } from "./Button";

/** An id cut to 13 characters. Hovering shows it whole, and the button copies it whole. */
export function Id({ id, copy = false }: { id: string; copy?: boolean }) {
  const toast = useToast();
  const copyId = async () => {
    try {
      await navigator.clipboard.writeText(id);
      toast({ text: "Copied the id." });
    } catch {
      toast({ text: `The browser did not allow copying. The id is ${id}`, bad: true });
    }
  };
  return (
    <span className="line id-line">
      <code title={id}>{shortId(id)}</code>
      {copy && <Button kind="quiet" icon="copy" aria-label={`Copy the id ${id}`} onClick={copyId} />}
    </span>
  );
}
