/** Server-sent events, parsed from a `fetch` body: unlike EventSource it shows why the gateway refused. */

export interface ServerEvent {
  event: string;
  id: string;
  data: unknown;
}

/** Collects text and yields the events that are whole. */
export class EventParser {
  private rest = "";
  private lastId = "";

  *take(text: string): Generator<ServerEvent> {
    this.rest += text;
    const blocks = this.rest.split(/\r?\n\r?\n/);
    this.rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = this.parse(block);
      if (event) yield event;
    }
  }

  private parse(block: string): ServerEvent | null {
    let name = "message";
    const data: string[] = [];
    for (const line of block.split(/\r?\n/)) {
      const [field, value] = cut(line);
      if (field === "event") name = value;
      else if (field === "data") data.push(value);
      else if (field === "id") this.lastId = value;
    }
    if (data.length === 0) return null; // a comment that keeps the connection open
    return { event: name, id: this.lastId, data: JSON.parse(data.join("\n")) };
  }
}

function cut(line: string): [string, string] {
  const colon = line.indexOf(":");
  if (colon < 0) return [line, ""];
  const value = line.slice(colon + 1);
  return [line.slice(0, colon), value.startsWith(" ") ? value.slice(1) : value];
}
