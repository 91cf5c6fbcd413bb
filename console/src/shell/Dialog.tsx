import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "@/components/Button";

/** A sheet over the page. Escape and a click beside it close it. */
export function Dialog(properties: {
  title?: string;
  label?: string;
  className?: string;
  onClose: () => void;
  footer?: ReactNode;
  children: ReactNode;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const { onClose } = properties;
  useEffect(() => {
    const dialog = element.current;
    if (!dialog) return;
    dialog.showModal();
    const clicked = (event: MouseEvent) => {
      if (event.target === dialog) onClose();
    };
    dialog.addEventListener("click", clicked);
    return () => dialog.removeEventListener("click", clicked);
  }, [onClose]);
  return (
    <dialog
      ref={element}
      className={`sheet ${properties.className ?? ""}`}
      aria-label={properties.title ?? properties.label}
      onClose={onClose}
    >
      {properties.title && (
        <header>
          <h2 className="grow">{properties.title}</h2>
          <Button kind="quiet" icon="close" aria-label="Close" onClick={onClose} />
        </header>
      )}
      {properties.title ? <div className="body">{properties.children}</div> : properties.children}
      {properties.footer && <footer>{properties.footer}</footer>}
    </dialog>
  );
}
