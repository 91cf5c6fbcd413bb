import { useState } from "react";
import { Button } from "@/components/Button";

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  return (
    <Button
      kind="quiet"
      icon={done ? "done" : "copy"}
      onClick={() =>
        void navigator.clipboard.writeText(text).then(
          () => setDone(true),
          () => setDone(false),
        )
      }
    >
      {done ? "Copied" : label}
    </Button>
  );
}
