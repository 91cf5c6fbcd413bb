import { describe, expect, it } from "vitest";
import { EventParser } from "./sse";

const parse = (...texts: string[]) => {
  const parser = new EventParser();
  return texts.flatMap((text) => [...parser.take(text)]);
};

describe("EventParser", () => {
  it("reads an event that comes in pieces", () => {
    expect(parse("event: jobs.job\nid: jo", 'bs=4\ndata: {"a"', ": 1}\n", "\n")).toEqual([
      { event: "jobs.job", id: "jobs=4", data: { a: 1 } },
    ]);
  });

  it("leaves out what only keeps the connection open", () => {
    expect(parse(": ping\n\n", "data: 1\n\n: ping\n\ndata: 2\n\n").map((event) => event.data)).toEqual([1, 2]);
  });

  it("joins lines of data, accepts CRLF, and keeps the last id", () => {
    expect(parse("id: 7\r\ndata: [1,\r\ndata: 2]\r\n\r\nevent: x\r\ndata: null\r\n\r\n")).toEqual([
      { event: "message", id: "7", data: [1, 2] },
      { event: "x", id: "7", data: null },
    ]);
  });
});
