import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  changeNode,
  changeRequest,
  decodeNode,
  decodeRequest,
  encodeNode,
  encodeRequest,
  nodeStates,
  RecordError,
  requestStates,
} from "../src/index.ts";
import { members } from "../src/json/members.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const string = (data: Uint8Array) => new TextDecoder().decode(data);
const space = fc.stringMatching(/^[ \n\t\r]{0,3}$/);
const rawValue = fc.oneof(
  fc.json(),
  fc.bigInt().map(String),
  fc.constantFrom("NaN", "Infinity", "-Infinity", '"\\ud800"', '"\\\\"', '"\\""', "1e400", '[NaN,{"}":"]"}]'),
);
const ours = new Set(["state", "state_time", "comment", "host_keys"]);
const unknownKey = fc
  .oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "x"))
  .filter((key) => !/^[a-z_]+$/.test(key) || !ours.has(key));
const foreign = fc.record({
  key: unknownKey.map((key) => `zz${key}`),
  value: rawValue,
  before: space,
  after: space,
});

function build(
  state: string,
  others: readonly { key: string; value: string; before: string; after: string }[],
): string {
  const parts = others.map(
    ({ key, value, before, after }) => `${before}${JSON.stringify(key)}${after}:${before}${value}${after}`,
  );
  parts.splice(Math.floor(parts.length / 2), 0, `"state":"${state}"`);
  return `{${parts.join(",")}}`;
}

/** Raw texts of all values that are not ours, in order. */
function foreigners(text: string): string[] {
  return members(text)
    .filter(({ key }) => key.startsWith("zz"))
    .map(({ key, start, end }) => `${key}=${text.slice(start, end)}`);
}

describe("records of other makers", () => {
  it("keep every unknown field's raw text through our writes", () => {
    fc.assert(
      fc.property(
        fc.array(foreign, { maxLength: 12 }),
        fc.constantFrom(...nodeStates),
        fc.string(),
        (others, state, comment) => {
          const text = build("ready", others);
          const changed = changeNode(decodeNode("1", bytes(text)), { state, comment }, 12.5);
          const written = string(encodeNode(changed));
          expect(foreigners(written)).toEqual(foreigners(text));
          const again = decodeNode("1", encodeNode(changed));
          expect(again).toMatchObject({ state, comment, stateTime: 12.5 });
          expect(again).toEqual(changed);
        },
      ),
      { numRuns: 400 },
    );
  });

  it("are changed again as if they had been read again", () => {
    const change = fc.oneof(
      fc.record({ state: fc.constantFrom(...nodeStates) }),
      fc.record({ comment: fc.option(fc.string()), hostKeys: fc.array(fc.string(), { maxLength: 2 }) }),
      fc.record({ connectionPort: fc.nat() }),
    );
    fc.assert(
      fc.property(
        fc.array(foreign, { maxLength: 6 }),
        fc.array(change, { maxLength: 5 }),
        (others, changes) => {
          let record = decodeNode("1", bytes(build("ready", others)));
          for (const one of changes) {
            const again = decodeNode("1", bytes(record.source.text));
            record = changeNode(record, one, 12.5);
            expect(record.source.text).toBe(changeNode(again, one, 12.5).source.text);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it("come back as they were when nothing is changed", () => {
    fc.assert(
      fc.property(fc.array(foreign, { maxLength: 8 }), fc.constantFrom(...requestStates), (others, state) => {
        const text = build(state, others);
        expect(string(encodeRequest(decodeRequest("100-0000000001", bytes(text))))).toBe(text);
      }),
      { numRuns: 200 },
    );
  });
});

describe("anything at all", () => {
  const keys = [
    "state",
    "type",
    "allocated_to",
    "host_keys",
    "connection_port",
    "node_types",
    "declined_by",
    "resources",
  ];
  const wild = fc.dictionary(
    fc.constantFrom(...keys),
    fc.oneof(fc.jsonValue(), fc.constantFrom("ready", "requested")),
  );
  const data = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.string().map(bytes),
    fc.jsonValue().map((value) => bytes(JSON.stringify(value))),
    wild.map((value) => bytes(JSON.stringify({ state: "ready", ...value }))),
    wild.map((value) => bytes(JSON.stringify({ state: "requested", ...value }))),
  );

  it("is read, or refused with a RecordError; what is read can be changed", () => {
    fc.assert(
      fc.property(data, (bytes_) => {
        attempt(
          () => changeNode(decodeNode("1", bytes_), { state: "used", connectionPort: 1 }, 1),
          decodeAgainNode,
        );
        attempt(
          () => changeRequest(decodeRequest("1-1", bytes_), { state: "failed" }, 1),
          decodeAgainRequest,
        );
      }),
      { numRuns: 1000 },
    );
  });

  function attempt<R>(work: () => R, check: (record: R) => void): void {
    let record: R;
    try {
      record = work();
    } catch (error) {
      expect(error).toBeInstanceOf(RecordError);
      return;
    }
    check(record);
  }
  const decodeAgainNode = (record: ReturnType<typeof decodeNode>) =>
    expect(decodeNode("1", encodeNode(record))).toMatchObject({
      state: "used",
      connectionPort: 1,
      stateTime: 1,
    });
  const decodeAgainRequest = (record: ReturnType<typeof decodeRequest>) =>
    expect(decodeRequest("1-1", encodeRequest(record))).toMatchObject({ state: "failed", stateTime: 1 });
});
