import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseCall, parseResponse } from "../../src/api/xmlrpc/parse.ts";
import {
  writeCall,
  writeFault,
  writeResponse,
  XmlRpcDouble,
  XmlRpcTime,
  type XmlRpcValue,
} from "../../src/api/xmlrpc/write.ts";
import { XmlRpcError } from "../../src/errors.ts";

// What XML 1.0 can carry; line ends other than \n are XML's own affair, but for \r, which is written as a reference.
const isXml = (one: string) =>
  one === "\t" || one === "\n" || one === "\r" || (one >= " " && one !== "\ufffe" && one !== "\uffff");
const text = fc.string({ unit: "grapheme" }).map((one) => [...one.toWellFormed()].filter(isXml).join(""));
const { value } = fc.letrec<{ value: XmlRpcValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.integer({ min: -2_147_483_648, max: 2_147_483_647 }),
    fc.boolean(),
    text,
    fc.constant(null),
    fc.uint8Array().map((one) => Buffer.from(one)),
    fc
      .double({ noNaN: true, noDefaultInfinity: true })
      .filter((one) => !Object.is(one, -0))
      .map((one) => new XmlRpcDouble(one)),
    fc.constant(new XmlRpcTime("20061030T12:00:00")),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(text, tie("value"), { maxKeys: 4 }).map((one) => Object.fromEntries(Object.entries(one))),
  ),
}));

const call = (inner: string) =>
  `<methodCall><methodName>M</methodName><params>${inner}</params></methodCall>`;
const one = (inner: string) => parseCall(call(`<param><value>${inner}</value></param>`)).params[0];

describe("XML-RPC", () => {
  test("what is written is read again", () =>
    fc.assert(
      fc.property(fc.array(value, { maxLength: 3 }), (params) => {
        expect(parseCall(writeCall("M.x", params))).toEqual({ method: "M.x", params });
        for (const param of params) expect(parseResponse(writeResponse(param))).toEqual({ value: param });
      }),
    ));

  test("any text is read or refused with an XmlRpcError, near-misses of a call too", () =>
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(), fc.nat(5), value, (noise, at, drop, param) => {
        const good = writeCall("M", [param]);
        const cut = at % good.length;
        for (const bad of [noise, good.slice(0, cut) + noise + good.slice(cut + drop)]) {
          try {
            parseCall(bad);
          } catch (error) {
            expect(error).toBeInstanceOf(XmlRpcError);
          }
        }
      }),
      { numRuns: 500 },
    ));

  test("a value without a type is a string; i4 is int", () => {
    expect(one(" x &lt;&#38; ")).toBe(" x <& ");
    expect(one("<![CDATA[<a>]]>")).toBe("<a>");
    expect(one("<i4> -7 </i4>")).toBe(-7);
    expect(one("")).toBe("");
    const levels = `${"<array><data><value>".repeat(32)}${"</value></data></array>".repeat(32)}`;
    expect(one(levels)).toEqual(expect.any(Array));
  });

  test("what XML-RPC cannot carry is not written", () => {
    for (const bad of [2 ** 31, 1.5, Number.NaN, new XmlRpcDouble(Number.NaN)])
      expect(() => writeResponse(bad)).toThrow(XmlRpcError);
    expect(parseResponse(writeResponse("a\0\ud800b"))).toEqual({ value: "a\ufffd\ufffdb" });
    expect(parseResponse(writeFault(108, "<no> & never\r\n"))).toEqual({
      fault: { faultCode: 108, faultString: "<no> & never\r\n" },
    });
  });
});
