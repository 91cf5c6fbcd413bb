/** Short messages about what was just done. They are said to screen readers, and go by themselves. */

import { createContext, type ReactNode, useCallback, useContext, useState } from "react";
import { Link } from "wouter";
import { Button } from "@/components/Button";
import { Icon } from "@/components/Icon";
import { Glyph } from "@/components/states";

export interface Toast {
  text: string;
  /** The state whose sign stands before the words. */
  state?: string;
  link?: { href: string; text: string };
  bad?: boolean;
}

const SECONDS = 8;
const MOST = 3;

const ToastContext = createContext<(toast: Toast) => void>(() => undefined);

export function useToast(): (toast: Toast) => void {
  return useContext(ToastContext);
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<(Toast & { number: number })[]>([]);
  const close = useCallback((number: number) => setToasts((all) => all.filter((toast) => toast.number !== number)), []);
  const show = useCallback(
    (toast: Toast) => {
      const number = performance.now();
      setToasts((all) => [...all, { ...toast, number }].slice(-MOST));
      if (!toast.bad) setTimeout(() => close(number), SECONDS * 1000);
    },
    [close],
  );
  return (
    <ToastContext value={show}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map((toast) => (
          <div key={toast.number} className="toast">
            {toast.bad ? <Icon name="warning" /> : toast.state && <Glyph state={toast.state} />}
            <span>{toast.text}</span>
            {toast.link && <Link href={toast.link.href}>{toast.link.text}</Link>}
            <Button kind="quiet" icon="close" aria-label="Close" onClick={() => close(toast.number)} />
          </div>
        ))}
      </div>
    </ToastContext>
  );
}
