/** One change by an operator: it says what was done, or why it was refused, and reads what it changed again. */

import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";
import { asProblem, wording } from "@/api/problem";
import { useToast } from "@/shell/toasts";

export function useAction<Order, Outcome>(options: {
  run: (order: Order) => Promise<Outcome>;
  done: (outcome: Outcome, order: Order) => string;
  refresh: readonly QueryKey[];
  /** Whether the screen shows a refusal itself, beside what was refused. */
  tells?: boolean;
}) {
  const client = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: options.run,
    onSuccess: (outcome: Outcome, order: Order) => toast({ text: options.done(outcome, order) }),
    onError: (error) => {
      if (options.tells) return;
      const { happened, remedy } = wording(asProblem(error));
      toast({ text: `${happened} ${remedy}`, bad: true });
    },
    onSettled: () => {
      for (const queryKey of options.refresh) void client.invalidateQueries({ queryKey });
    },
  });
}
