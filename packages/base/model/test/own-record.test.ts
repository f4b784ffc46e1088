import { describe, expect, test } from "vitest";
import {
  type Canary,
  decodeCanary,
  decodeDeadLetter,
  decodeLease,
  decodeToken,
  encodeCanary,
  encodeDeadLetter,
  encodeLease,
  encodeToken,
  type Lease,
  type Token,
} from "../src/index.ts";

const lease: Lease = {
  id: "9e54948f3a62",
  state: "waiting",
  owner: "me@here",
  labels: ["small"],
  request: null,
  nodes: [],
  created: 1,
  expires: 2,
  tenant: null,
  heartbeat: 1,
  until: 3,
  verdict: "dirty",
  expired: true,
  commit: true,
  job: { system: "zuul", id: "b1", name: "unit", url: "https://ci/b1" },
  data: "{}",
  set: {
    priority: "200",
    project: null,
    branch: "main",
    same: [{ fact: "zone", labels: ["a", "b"] }],
    parts: [
      { label: "a", nodes: ["0000000001"], asked: null },
      { label: "b", nodes: [], asked: { token: "t", at: 5 } },
    ],
    yields: false,
  },
  why: "no pool",
};
const token: Token = {
  name: "ci",
  role: "user",
  hash: "00",
  labels: ["small"],
  tenants: ["*"],
  created: 1,
  createdBy: "me@here",
  expires: 2,
  revoked: null,
  revokedBy: null,
};
const noBoots = { boots: 0, failed: 0, logs: 0, squares: 0 };
const canary: Canary = {
  candidate: "b2",
  since: 5,
  share: 0.1,
  tallies: { candidate: { ...noBoots, boots: 1 }, stable: { ...noBoots, failed: 1 } },
  rejected: ["b1"],
  last: null,
};

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
  } catch (error) {
    return (error as { code?: string }).code;
  }
  return undefined;
}

describe("records that only Nodeyard keeps", () => {
  test("are read as they were written", () => {
    expect(decodeLease(lease.id, encodeLease(lease))).toEqual(lease);
    expect(decodeToken(token.name, encodeToken(token))).toEqual(token);
    expect(decodeCanary("small", encodeCanary(canary))).toEqual(canary);
    const letter = { node: "0000000001", provider: "cloud", attempts: 3, since: 7, error: "no" };
    expect(decodeDeadLetter(letter.node, encodeDeadLetter(letter))).toEqual(letter);
  });

  test.each(["role", "hash", "labels", "tenants", "expires", "revoked"])(
    "a token without a valid %s gives no rights",
    (key) => {
      const record = JSON.parse(Buffer.from(encodeToken(token)).toString()) as object;
      for (const broken of [
        { ...record, [key]: { odd: true } },
        { ...record, [key]: undefined },
      ])
        expect(codeOf(() => decodeToken("ci", Buffer.from(JSON.stringify(broken))))).toBe("record.bad_field");
    },
  );

  test("what a later release wrote into one survives a change, byte for byte", () => {
    const stored = Buffer.from('{"v": 1, "later": 12345678901234567890, "state": "waiting"}');
    const text = Buffer.from(encodeLease({ ...lease, state: "released" }, stored)).toString();
    expect(text).toContain('{"v": 1, "later": 12345678901234567890, "state": "released", ');
  });

  test.each([
    ["nonsense", "record.not_json"],
    ["[]", "record.not_an_object"],
    ['{"v":2}', "record.version"],
    [JSON.stringify({ v: 1, ...lease, state: "sold" }), "record.bad_field"],
    [JSON.stringify({ v: 1, ...lease, labels: ["a", 1] }), "record.bad_field"],
    [JSON.stringify({ v: 1, ...lease, expires: undefined }), "record.bad_field"],
  ])("%s is refused as %s", (text, code) => {
    expect(codeOf(() => decodeLease(lease.id, Buffer.from(text)))).toBe(code);
  });

  test("a trial with a figure that is no number is refused, with what to do", () => {
    const broken = { v: 1, ...canary, tallies: { ...canary.tallies, stable: { ...noBoots, logs: null } } };
    expect(() => decodeCanary("small", Buffer.from(JSON.stringify(broken)))).toThrow(
      "delete /nodeyard/canaries/small and the newest build is launched",
    );
  });

  test("a mark of a node counts, whatever it says", () => {
    const nothing = { node: "1", provider: null, attempts: 0, since: 0, error: "" };
    expect(decodeDeadLetter("1", Buffer.from("nonsense"))).toEqual(nothing);
    expect(decodeDeadLetter("1", Buffer.from('{"v":9,"attempts":"many","provider":7}'))).toEqual(nothing);
  });
});
