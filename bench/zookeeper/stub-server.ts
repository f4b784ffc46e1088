import { createServer, type Socket } from "node:net";

/**
 * A server that answers each request with the same frame, whatever it asks: what is measured against it is the
 * client alone. It knows the frames of connect, create, create2, getData, setData, ping and closeSession.
 */
export interface StubServer {
  readonly servers: string;
  close(): Promise<void>;
}

const CONNECT = -1;
const CREATE = 1;
const GET_DATA = 4;
const SET_DATA = 5;
const PING = 11;
const CREATE_2 = 15;
const CLOSE_SESSION = -11;

/** Length, then the header of a reply: xid, zxid, error code. */
const XID_AT = 4;
const HEADER_BYTES = 4 + 4 + 8 + 4;
const STAT_BYTES = 68;

function reply(...parts: readonly Buffer[]): Buffer {
  const frame = Buffer.concat([Buffer.alloc(HEADER_BYTES), ...parts]);
  frame.writeInt32BE(frame.length - 4, 0);
  frame.writeBigInt64BE(1n, 8);
  return frame;
}

function bytes(content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(content.length);
  return Buffer.concat([length, content]);
}

function connected(): Buffer {
  const frame = Buffer.alloc(4 + 4 + 4 + 8 + 4 + 16 + 1);
  frame.writeInt32BE(frame.length - 4, 0);
  frame.writeInt32BE(30_000, 8);
  frame.writeBigInt64BE(0x1234n, 12);
  frame.writeInt32BE(16, 20);
  return frame;
}

const stat = Buffer.alloc(STAT_BYTES);
const path = bytes(Buffer.from("/bench/stub/0000"));

function frames(dataBytes: number): ReadonlyMap<number, Buffer> {
  return new Map([
    [CONNECT, connected()],
    [CREATE, reply(path)],
    [CREATE_2, reply(path, stat)],
    [GET_DATA, reply(bytes(Buffer.alloc(dataBytes, "x")), stat)],
    [SET_DATA, reply(stat)],
    [PING, reply()],
    [CLOSE_SESSION, reply()],
  ]);
}

/** Starts the stub on a free loopback port; `dataBytes` is the size of what getData returns. */
export async function startStubServer(dataBytes: number): Promise<StubServer> {
  const canned = frames(dataBytes);
  const server = createServer({ noDelay: true }, (socket) => serve(socket, canned));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the stub server has no port");
  return {
    servers: `127.0.0.1:${address.port}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function serve(socket: Socket, canned: ReadonlyMap<number, Buffer>): void {
  let rest: Buffer = Buffer.alloc(0);
  let known = false;
  socket.on("error", () => socket.destroy());
  socket.on("data", (part) => {
    const input = rest.length === 0 ? part : Buffer.concat([rest, part]);
    const output: Buffer[] = [];
    let closing = false;
    let at = 0;
    while (input.length - at >= 4) {
      const end = at + 4 + input.readInt32BE(at);
      if (end > input.length) break;
      output.push(answer(canned, input, at, known));
      closing = known && input.readInt32BE(at + 8) === CLOSE_SESSION;
      known = true;
      at = end;
    }
    rest = input.subarray(at);
    if (output.length > 0) socket.write(Buffer.concat(output));
    if (closing) socket.end();
  });
}

function answer(canned: ReadonlyMap<number, Buffer>, input: Buffer, at: number, known: boolean): Buffer {
  const kind = known ? input.readInt32BE(at + 8) : CONNECT;
  const frame = canned.get(kind);
  if (frame === undefined) throw new Error(`the stub server knows no answer to opcode ${kind}`);
  if (!known) return frame;
  const copy = Buffer.allocUnsafe(frame.length);
  frame.copy(copy);
  copy.writeInt32BE(input.readInt32BE(at + 4), XID_AT);
  return copy;
}
