import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok } from "@/api/client";
import type { DeadLetterDetails } from "@/api/schema";
import { Button } from "@/components/Button";
import { Drawer } from "@/components/Drawer";
import { Empty } from "@/components/Empty";
import { Facts } from "@/components/Facts";
import { Field } from "@/components/Field";
import { Loaded } from "@/components/Loading";
import { Age, Time } from "@/components/Time";
import { bytes, plural, shortId } from "@/format/number";
import { useAddress } from "@/shell/address";
import { Dialog } from "@/shell/Dialog";
import { useMay } from "@/shell/session";
import { LETTERS_KEY, QUEUES_KEY } from "./queries";
import { SimpleTable } from "./Simple";
import { useAction } from "./useAction";

const REFRESH = [LETTERS_KEY, QUEUES_KEY, ["health"]];

/** Messages that nobody could process: why, and send them again or discard them. */
export function DeadLetters() {
  const may = useMay();
  const letters = useQuery({
    queryKey: LETTERS_KEY,
    queryFn: () => ok(api.GET("/api/v1/dead-letters", { params: { query: { limit: 500 } } })),
    refetchInterval: 10_000,
  });
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [openedId, setOpenedId] = useAddress<string>("letter", "");
  const [discarding, setDiscarding] = useState(false);
  const redrive = useAction({
    run: (ids: string[]) => ok(api.POST("/api/v1/dead-letters/redrive", { body: { message_ids: ids, all: false } })),
    done: (outcome) => `Sent ${plural(outcome.sent.length, "message")} again.`,
    refresh: REFRESH,
  });
  const toggle = (id: string) =>
    setSelected((earlier) => {
      const next = new Set(earlier);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  const chosen = [...selected];
  return (
    <Loaded query={letters}>
      {({ dead_letters: rows }) =>
        rows.length === 0 ? (
          <Empty title="No dead letters">
            A message that cannot be processed comes here with its reason, and is never lost.
          </Empty>
        ) : (
          <div className="with-drawer">
            <div>
              {may("POST /api/v1/dead-letters/redrive") && (
                <div className="toolbar">
                  <label className="check small">
                    <input
                      type="checkbox"
                      checked={rows.every((letter) => selected.has(letter.message_id))}
                      onChange={(event) =>
                        setSelected(new Set(event.target.checked ? rows.map((letter) => letter.message_id) : []))
                      }
                    />
                    <span>{chosen.length > 0 ? `${chosen.length} selected` : `Select all ${rows.length}`}</span>
                  </label>
                  <Button
                    icon="retry"
                    disabled={chosen.length === 0 || redrive.isPending}
                    onClick={() => redrive.mutate(chosen, { onSuccess: () => setSelected(new Set()) })}
                  >
                    Redrive
                  </Button>
                  <Button kind="danger" disabled={chosen.length === 0} onClick={() => setDiscarding(true)}>
                    Discard
                  </Button>
                </div>
              )}
              <SimpleTable
                label="Dead letters"
                rows={rows}
                rowKey={(letter) => letter.message_id}
                columns={[
                  ...(may("POST /api/v1/dead-letters/redrive")
                    ? [
                        {
                          head: "Select",
                          cell: (letter: DeadLetterDetails) => (
                            <input
                              type="checkbox"
                              aria-label={`Select ${letter.message_id}`}
                              checked={selected.has(letter.message_id)}
                              onChange={() => toggle(letter.message_id)}
                            />
                          ),
                        },
                      ]
                    : []),
                  {
                    head: "Message",
                    cell: (letter) => (
                      <button type="button" className="link mono" onClick={() => setOpenedId(letter.message_id)}>
                        {shortId(letter.message_id)}
                      </button>
                    ),
                  },
                  { head: "Queue", cell: (letter) => <code>{letter.queue_name}</code> },
                  { head: "Reason", cell: (letter) => <code>{letter.reason}</code> },
                  { head: "What happened", wraps: true, desk: true, cell: (letter) => letter.description },
                  { head: "Tries", num: true, desk: true, cell: (letter) => letter.delivery_count },
                  { head: "Since", num: true, cell: (letter) => <Age at={letter.dead_lettered_at} /> },
                ]}
              />
            </div>
            {rows
              .filter((letter) => letter.message_id === openedId)
              .map((letter) => (
                <Letter key={letter.message_id} letter={letter} onClose={() => setOpenedId("")} />
              ))}
            {discarding && (
              <DiscardDialog
                ids={chosen}
                onClose={() => {
                  setDiscarding(false);
                  setSelected(new Set());
                }}
              />
            )}
          </div>
        )
      }
    </Loaded>
  );
}

function Letter({ letter, onClose }: { letter: DeadLetterDetails; onClose: () => void }) {
  return (
    <Drawer
      title={<code>{shortId(letter.message_id)}</code>}
      label={`Dead letter ${letter.message_id}`}
      onClose={onClose}
    >
      <div className="body">
        <p className="read">{letter.description}</p>
        <Facts
          facts={[
            ["Reason", <code key="reason">{letter.reason}</code>],
            ["Queue", <code key="queue">{letter.queue_name}</code>],
            ["Sent", <Time key="sent" at={letter.enqueued_at} />],
            ["Given up", <Time key="up" at={letter.dead_lettered_at} />],
            ["Tries", letter.delivery_count],
            ["Size", bytes(letter.body_bytes)],
          ]}
        />
        <h3>Message</h3>
        <pre>{JSON.stringify(letter.body, null, 2)}</pre>
      </div>
    </Drawer>
  );
}

function DiscardDialog({ ids, onClose }: { ids: string[]; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const discard = useAction({
    run: (words: string) =>
      ok(api.POST("/api/v1/dead-letters/discard", { body: { message_ids: ids, all: false, reason: words } })),
    done: (outcome) => `Discarded ${plural(outcome.discarded.length, "message")}.`,
    refresh: REFRESH,
  });
  return (
    <Dialog
      title={`Discard ${plural(ids.length, "message")}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Keep them</Button>
          <Button
            kind="danger"
            disabled={!reason.trim() || discard.isPending}
            onClick={() => discard.mutate(reason.trim(), { onSettled: onClose })}
          >
            Discard for good
          </Button>
        </>
      }
    >
      <p>They are deleted. The audit keeps their ids, your name and the reason.</p>
      <Field label="Reason">
        {(field) => (
          <input {...field} className="input" value={reason} onChange={(event) => setReason(event.target.value)} />
        )}
      </Field>
    </Dialog>
  );
}
