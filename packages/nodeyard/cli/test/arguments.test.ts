import { labelsText } from "@nodeyard/operations/listing";
import { describe, expect, test } from "vitest";
import {
  parseAddress,
  parseDuration,
  parseLabels,
  parseLeaseId,
  parseNodeId,
  parsePriority,
  parseSubject,
} from "../src/arguments.ts";
import { UsageError } from "../src/errors.ts";

describe("labels", () => {
  test("a count repeats its label, and the order stays", () => {
    const labels = parseLabels(["noble:2", "arm", "noble"]);
    expect(labels).toEqual(["noble", "noble", "arm", "noble"]);
    expect(labelsText(labels)).toBe("noble:3, arm");
  });
  test("only the last number is a count: a label may have colons", () => {
    expect(parseLabels(["ubuntu:24.04", "board:v2:3"])).toEqual([
      "ubuntu:24.04",
      "board:v2",
      "board:v2",
      "board:v2",
    ]);
  });
  test.each([
    "",
    "noble:",
    "noble:0",
    "noble:1001",
    ":2",
    "noble:-1",
    "noble:+2",
    "noble:1e9",
    "noble:0x10",
    "noble:1_000",
  ])("%j is refused", (word) => {
    expect(() => parseLabels([word])).toThrow(UsageError);
  });
  test("what looks like a count and is none can still be a label, with a count after it", () => {
    expect(parseLabels(["noble:1e9:1"])).toEqual(["noble:1e9"]);
  });
  test("so are more nodes than one request may have, in all", () => {
    expect(() => parseLabels(["a:600", "b:600"])).toThrow("1200 nodes");
  });
});

describe("durations", () => {
  test.each([
    ["90s", 90_000],
    ["10m", 600_000],
    ["1h30m", 5_400_000],
    ["2d", 172_800_000],
    ["45", 45_000],
  ])("%s is %i ms", (text, ms) => expect(parseDuration(text)).toBe(ms));
  test.each(["", "h", "1x", "1h ", "-1h", "1.5h", "0", "0s", "366d", "1h30"])("%j is refused", (text) => {
    expect(() => parseDuration(text)).toThrow(UsageError);
  });
});

describe("priorities", () => {
  test.each([
    ["high", "100"],
    ["normal", "200"],
    ["low", "300"],
    ["050", "050"],
  ])("%s is %s", (text, value) => expect(parsePriority(text)).toBe(value));
  test.each(["", "1", "1000", "urgent", "10/"])("%j is refused: it becomes part of a path", (text) => {
    expect(() => parsePriority(text)).toThrow(UsageError);
  });
});

describe("addresses", () => {
  test.each([
    ["127.0.0.1:2181", { host: "127.0.0.1", port: 2181 }],
    ["zk.example.org:0", { host: "zk.example.org", port: 0 }],
    ["[::1]:2181", { host: "::1", port: 2181 }],
    ["2181", { host: "127.0.0.1", port: 2181 }],
  ])("%s", (text, address) => expect(parseAddress(text, "--listen")).toEqual(address));
  test.each(["", "host", "host:", ":2181", "host:65536", "::1:2181"])("%j is refused", (text) => {
    expect(() => parseAddress(text, "--listen")).toThrow(UsageError);
  });
});

describe("ids", () => {
  test("zeros in front of a node id may be left out", () => expect(parseNodeId("17")).toBe("0000000017"));
  test.each(["", "x", "12345678901", "../1", "-1"])(
    "node %j is refused: it becomes part of a path",
    (text) => {
      expect(() => parseNodeId(text)).toThrow(UsageError);
    },
  );
  test.each(["", "0123456789a", "0123456789AB", "../../nodepool", "0123456789abc"])(
    "lease %j is refused",
    (text) => {
      expect(() => parseLeaseId(text)).toThrow(UsageError);
    },
  );
});

describe("what explain is asked about", () => {
  test.each([
    ["200-0000000001", "request", "200-0000000001"],
    ["9e54948f3a62", "lease", "9e54948f3a62"],
    ["7", "node", "0000000007"],
    // Labels end in numbers as often as not.
    ["debian-12", "label", "debian-12"],
    ["ubuntu:24.04", "label", "ubuntu:24.04"],
    ["request 200-1", "request", "200-1"],
    ["label 7", "label", "7"],
    ["label 9e54948f3a62", "label", "9e54948f3a62"],
    ["node 7", "node", "0000000007"],
  ])("%s is a %s", (text, kind, id) => expect(parseSubject(text.split(" "))).toEqual({ kind, id }));

  test("a name may have anything in it when its kind is given", () => {
    expect(parseSubject(["label", "a b/c"])).toEqual({ kind: "label", id: "a b/c" });
  });

  test.each([
    [["../nodes"]],
    [["two words"]],
    [[""]],
    [["a", "b"]],
    [["label", "a", "b"]],
    [["node", "x"]],
    [["lease", "7"]],
  ])("%j is refused", (words) => expect(() => parseSubject(words)).toThrow(UsageError));
});
