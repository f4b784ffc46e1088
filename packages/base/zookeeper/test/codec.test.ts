import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ProtocolError, wire } from "../src/index.ts";

const { OpCode, JuteReader, JuteWriter } = wire;

const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const time = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
// Lone surrogates have no UTF-8, so the wire cannot carry them.
const text = fc.oneof(fc.string(), fc.string({ unit: "grapheme", maxLength: 200 }));
const bytes = fc.uint8Array({ maxLength: 3_000 }).map((array) => Buffer.from(array));
const acl = fc.array(fc.record({ perms: int, scheme: text, id: text }), { maxLength: 4 });
const stat = fc.record({
  czxid: long,
  mzxid: long,
  ctime: time,
  mtime: time,
  version: int,
  cversion: int,
  aversion: int,
  ephemeralOwner: long,
  dataLength: int,
  numChildren: int,
  pzxid: long,
});
const strings = fc.array(text, { maxLength: 20 });
const is = <T extends number>(...types: T[]) => fc.constantFrom(...types);

const create = fc.record({
  type: is(OpCode.create, OpCode.create2, OpCode.createContainer),
  path: text,
  data: bytes,
  acl,
  flags: int,
});
const createTtl = fc.record({
  type: is(OpCode.createTtl),
  path: text,
  data: bytes,
  acl,
  flags: int,
  ttl: time,
});
const versioned = fc.record({ type: is(OpCode.delete, OpCode.check), path: text, version: int });
const setData = fc.record({ type: is(OpCode.setData), path: text, data: bytes, version: int });
const read = fc.record({
  type: is(OpCode.exists, OpCode.getData, OpCode.getChildren, OpCode.getChildren2),
  path: text,
  watch: fc.boolean(),
});
const ops = fc.array(fc.oneof(create, createTtl, versioned, setData, read), { maxLength: 8 });
const watchLists = {
  relativeZxid: long,
  dataWatches: strings,
  existWatches: strings,
  childWatches: strings,
};
const none = fc.constant<string[]>([]);

const request: fc.Arbitrary<wire.Request> = fc.oneof(
  create,
  createTtl,
  versioned,
  setData,
  read,
  fc.record({
    type: is(OpCode.getAcl, OpCode.sync, OpCode.getAllChildrenNumber, OpCode.getEphemerals),
    path: text,
  }),
  fc.record({ type: is(OpCode.setAcl), path: text, acl, version: int }),
  fc.record({ type: is(OpCode.multi), ops }),
  fc.record({ type: is(OpCode.multiRead), ops }),
  fc.record({ type: is(OpCode.checkWatches, OpCode.removeWatches), path: text, watcherType: int }),
  fc.record({ type: is(OpCode.addWatch), path: text, mode: int }),
  fc.record({ type: is(OpCode.auth), scheme: text, auth: bytes }),
  fc.record({ type: is(OpCode.sasl), token: bytes }),
  fc.record({
    type: is(OpCode.setWatches2),
    ...watchLists,
    persistentWatches: strings,
    persistentRecursiveWatches: strings,
  }),
  fc.record({
    type: is(OpCode.setWatches),
    ...watchLists,
    persistentWatches: none,
    persistentRecursiveWatches: none,
  }),
  fc.record({ type: is(OpCode.ping, OpCode.closeSession, OpCode.whoAmI) }),
);

const result: fc.Arbitrary<wire.MultiResult> = fc.oneof(
  fc.record({ type: is(OpCode.create), path: text }),
  fc.record({ type: is(OpCode.create2, OpCode.createContainer, OpCode.createTtl), path: text, stat }),
  fc.record({ type: is(OpCode.delete, OpCode.check) }),
  fc.record({ type: is(OpCode.setData), stat }),
  fc.record({ type: is(OpCode.getData), data: bytes, stat }),
  fc.record({ type: is(OpCode.getChildren), children: strings }),
  fc.record({ type: fc.constant("error" as const), err: int }),
);

function body<T extends wire.OpCode>(type: T, arbitrary: fc.Arbitrary<wire.ResponseTo<T>>) {
  return arbitrary.map((response) => ({ type: type as wire.OpCode, response: response as unknown }));
}

const response = fc.oneof(
  body(OpCode.create, fc.record({ path: text })),
  body(OpCode.sync, fc.record({ path: text })),
  body(OpCode.create2, fc.record({ path: text, stat })),
  body(OpCode.createContainer, fc.record({ path: text, stat })),
  body(OpCode.createTtl, fc.record({ path: text, stat })),
  body(OpCode.exists, fc.record({ stat })),
  body(OpCode.setData, fc.record({ stat })),
  body(OpCode.setAcl, fc.record({ stat })),
  body(OpCode.getData, fc.record({ data: bytes, stat })),
  body(OpCode.getChildren, fc.record({ children: strings })),
  body(OpCode.getChildren2, fc.record({ children: strings, stat })),
  body(OpCode.getAcl, fc.record({ acl, stat })),
  body(OpCode.multi, fc.record({ results: fc.array(result, { maxLength: 8 }) })),
  body(OpCode.multiRead, fc.record({ results: fc.array(result, { maxLength: 8 }) })),
  body(OpCode.sasl, fc.record({ token: bytes })),
  body(OpCode.getEphemerals, fc.record({ ephemerals: strings })),
  body(OpCode.getAllChildrenNumber, fc.record({ totalNumber: int })),
  body(OpCode.addWatch, fc.record({ err: int })),
  body(OpCode.whoAmI, fc.record({ clientInfo: fc.array(fc.record({ authScheme: text, user: text })) })),
  body(OpCode.delete, fc.constant({})),
);

function written(write: (w: wire.JuteWriter) => void): Buffer {
  const writer = new JuteWriter(64);
  write(writer);
  return Buffer.from(writer.written());
}

describe("the codec", () => {
  test("reads every request as it was written, to its last byte", () => {
    fc.assert(
      fc.property(request, (value) => {
        const reader = new JuteReader(written((w) => wire.writeRequest(w, value)));
        expect(wire.readRequest(reader, value.type)).toEqual(value);
        expect(reader.left).toBe(0);
      }),
      { numRuns: 1_000 },
    );
  });

  test("reads every response as it was written, to its last byte", () => {
    fc.assert(
      fc.property(response, ({ type, response: value }) => {
        const reader = new JuteReader(written((w) => wire.writeResponse(w, type, value as never)));
        expect(wire.readResponse(reader, type)).toEqual(value);
        expect(reader.left).toBe(0);
      }),
      { numRuns: 1_000 },
    );
  });

  test("reads handshakes, headers and events as they were written", () => {
    fc.assert(
      fc.property(int, long, int, long, bytes, fc.boolean(), text, (a, b, c, d, passwd, readOnly, path) => {
        const asked = {
          protocolVersion: a,
          lastZxidSeen: b,
          timeOut: c,
          sessionId: d,
          passwd,
          readOnly,
        };
        const { lastZxidSeen: _, ...answered } = asked;
        const event = { type: a, state: c, path };
        const reader = new JuteReader(
          written((w) => {
            wire.requestHeader.write(w, { xid: a, type: c });
            wire.replyHeader.write(w, { xid: c, zxid: b, err: a });
            wire.watcherEvent.write(w, event);
            wire.connectResponse.write(w, answered);
            wire.connectRequest.write(w, asked);
          }),
        );
        expect(wire.requestHeader.read(reader)).toEqual({ xid: a, type: c });
        expect(wire.replyHeader.read(reader)).toEqual({ xid: c, zxid: b, err: a });
        expect(wire.watcherEvent.read(reader)).toEqual(event);
        expect(wire.connectResponse.read(reader)).toEqual(answered);
        expect(wire.connectRequest.read(reader)).toEqual(asked);
      }),
    );
  });

  test("meets truncated and random bytes with ProtocolError and nothing else", () => {
    const types = Object.values(OpCode);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.constantFrom(...types), (array, type) => {
        for (const decode of [wire.readRequest, wire.readResponse]) {
          const reader = new JuteReader(Buffer.from(array));
          try {
            decode(reader, type);
          } catch (error) {
            expect(error).toBeInstanceOf(ProtocolError);
          }
        }
      }),
      { numRuns: 5_000 },
    );
  });

  test("refuses a list that its frame could not hold, before it allocates anything for it", () => {
    const reader = new JuteReader(written((w) => w.int(2 ** 31 - 1)));
    expect(() => reader.strings()).toThrow(ProtocolError);
  });

  test("hands out copies: overwriting the receive buffer changes nothing", () => {
    const frame = written((w) => w.buffer(Buffer.from("kept")));
    const data = new JuteReader(frame).buffer();
    frame.fill(0);
    expect(data.toString()).toBe("kept");
  });

  test("writes the bytes that the protocol demands", () => {
    const create2 = {
      type: OpCode.create2,
      path: "/é",
      data: Buffer.from([1, 2]),
      acl: [{ perms: 31, scheme: "world", id: "anyone" }],
      flags: 3,
    } as const;
    expect(written((w) => wire.writeRequest(w, create2)).toString("hex")).toBe(
      [
        "00000003" + "2fc3a9",
        "00000002" + "0102",
        "00000001" + "0000001f" + "00000005" + "776f726c64" + "00000006" + "616e796f6e65",
        "00000003",
      ].join(""),
    );
  });
});

describe("the frame splitter", () => {
  test("finds the same frames however the stream is torn", () => {
    const frames = fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 20 });
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1 }), (sent, cuts) => {
        const stream = Buffer.concat(sent.map((frame) => written((w) => w.buffer(Buffer.from(frame)))));
        const got: string[] = [];
        const splitter = new wire.FrameSplitter(1_000, (from, start, end) =>
          got.push(from.toString("hex", start, end)),
        );
        // One buffer for all reads, as the socket has it.
        const receive = Buffer.alloc(300);
        for (let at = 0, turn = 0; at < stream.length; turn++) {
          const size = Math.min(cuts[turn % cuts.length]!, stream.length - at);
          stream.copy(receive, 0, at, at + size);
          splitter.push(receive, size);
          at += size;
        }
        expect(got).toEqual(sent.map((frame) => Buffer.from(frame).toString("hex")));
      }),
      { numRuns: 500 },
    );
  });

  test.each([-1, 1_001, -(2 ** 31)])("refuses a frame of %i bytes, torn or not", (size) => {
    const header = Buffer.alloc(4);
    header.writeInt32BE(size);
    const whole = new wire.FrameSplitter(1_000, () => undefined);
    expect(() => whole.push(header)).toThrow(ProtocolError);
    const torn = new wire.FrameSplitter(1_000, () => undefined);
    torn.push(header.subarray(0, 1));
    expect(() => torn.push(header.subarray(1))).toThrow(ProtocolError);
  });
});
