import fc from "fast-check";
import { expect, it } from "vitest";
import {
  changeNode,
  changeRequest,
  decodeNode,
  decodeRequest,
  encodeNode,
  encodeRequest,
  newNode,
  newRequest,
  nodeStates,
  requestStates,
} from "../src/index.ts";

/** JSON has no -0. */
const json = fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value)));
const text = fc.option(fc.string(), { nil: null });

it("a node's own bytes give what a parse of a copy of them gives", () => {
  const patch = fc.record(
    {
      state: fc.constantFrom(...nodeStates),
      provider: text,
      type: fc.array(fc.string()),
      comment: text,
      connectionPort: fc.nat(65_535),
      hostKeys: fc.array(fc.string()),
      resources: fc.option(fc.dictionary(fc.stringMatching(/^[a-z]+$/), fc.nat()), { nil: null }),
      driverData: json,
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(patch, patch, (first, second) => {
      const made = newNode(first, 1);
      for (const record of [made, changeNode(made, second, 2)]) {
        const data = encodeNode(record);
        expect(decodeNode("0000000007", data)).toEqual(decodeNode("0000000007", Uint8Array.from(data)));
      }
    }),
  );
});

it("a request's own bytes give what a parse of a copy of them gives", () => {
  const patch = fc.record(
    {
      state: fc.constantFrom(...requestStates),
      nodeTypes: fc.array(fc.string()),
      nodes: fc.array(fc.string()),
      reuse: fc.boolean(),
      requestorData: json,
      relativePriority: fc.integer(),
      tenantName: text,
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(patch, patch, (first, second) => {
      const made = newRequest(first, 1);
      for (const record of [made, changeRequest(made, second, 2)]) {
        const data = encodeRequest(record);
        const id = "100-0000000001";
        expect(decodeRequest(id, data)).toEqual(decodeRequest(id, Uint8Array.from(data)));
      }
    }),
  );
});

it("bytes of one kind of record are never taken for another", () => {
  const data = encodeNode(newNode({ state: "ready" }, 1));
  expect(() => decodeRequest("100-0000000001", data)).toThrow("state is");
});
