import fc from "fast-check";
import { expect, test } from "vitest";
import { formatTemplate, type RequestFacts, requestFields } from "../src/index.ts";

const facts: RequestFacts = {
  id: "100-0000000042",
  labels: ["noble", "o'clock"],
  requestor: "zuul",
  requestorData: { build: { uuid: "abc" }, n: 3, ok: true, none: null },
  relativePriority: 2,
  eventId: null,
  createdTime: 1.5,
  tenantName: null,
};
const fields = { request: requestFields(facts) };
const fill = (template: unknown) => formatTemplate(template, fields);

test.each([
  ["Tenant is {request.tenant_name}", "Tenant is None"],
  ["{request.labels}", `['noble', "o'clock"]`],
  ["{request.labels[1]}", "o'clock"],
  ["{request.labels[1]!r}", `"o'clock"`],
  ["{request.requestor_data[build][uuid]}", "abc"],
  ["{request.requestor_data}", "{'build': {'uuid': 'abc'}, 'n': 3, 'ok': True, 'none': None}"],
  ["{{{request.relative_priority:>3}}}", "{  2}"],
  ["[{request.requestor:*^8.3}]", "[**zuu***]"],
  ["", ""],
])("%s", (template, text) => expect(fill(template)).toEqual({ text }));

test.each([
  ["{request.nothing}", "nothing"],
  ["{request.constructor}", "constructor"],
  ["{request.labels[7]}", "7"],
  ["{request.labels.length}", "length"],
  ["{}", "not understood"],
  ["{request.id", "closes"],
  ["}", "single"],
  [7, "not a string"],
  ["{request.id:,}", "format"],
])("%s is a problem", (template, why) =>
  expect(fill(template)).toEqual({ problem: expect.stringContaining(why) }),
);

test("text with doubled braces comes back as it was, whatever it is", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const escaped = text.replaceAll("{", "{{").replaceAll("}", "}}");
      expect(fill(escaped)).toEqual({ text });
    }),
  );
});

test("no template throws", () => {
  const piece = fc.constantFrom("{", "}", "request", ".", "labels", "[", "]", "0", "!r", ":", ">9", "id");
  fc.assert(fc.property(fc.array(piece), (pieces) => void fill(pieces.join(""))));
});
