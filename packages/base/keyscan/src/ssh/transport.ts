import type { Wire } from "../contract.ts";
import { ScanProtocolError } from "../errors.ts";
import { Fields, uint32 } from "./bytes.ts";

const OUR_VERSION = "SSH-2.0-nodeyard_keyscan";
/** RFC 4253 4.2 allows lines before the version. A server that sends more than this before it is no SSH server. */
const MAX_GREETING = 8 * 1024;
/** RFC 4253 6.1: the size that every implementation must accept. Larger packets do not occur before encryption. */
const MAX_PACKET = 35_000;

/** Numbers of messages that may come at any time (RFC 4253, 11). */
const DISCONNECT = 1;
const IGNORE = 2;
const UNIMPLEMENTED = 3;
const DEBUG = 4;

/** The unencrypted start of an SSH connection: version lines, then packets (RFC 4253 sections 4.2 and 6). */
export class Transport {
  readonly clientVersion = OUR_VERSION;
  readonly #wire: Wire;
  /** Bytes that were read and not used yet: at most one packet and the rest of a chunk. */
  #buffer: Buffer = Buffer.alloc(0);

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Sends the client's version and returns the server's, without its line end. */
  async version(): Promise<string> {
    this.#wire.write(Buffer.from(`${OUR_VERSION}\r\n`, "latin1"));
    let read = 0;
    for (;;) {
      const end = this.#buffer.indexOf(0x0a);
      if (end < 0) {
        if (read + this.#buffer.length > MAX_GREETING) break;
        await this.#more("before its SSH version");
        continue;
      }
      const line = this.#buffer.toString("latin1", 0, end).replace(/\r$/, "");
      this.#buffer = this.#buffer.subarray(end + 1);
      read += end + 1;
      if (line.startsWith("SSH-2.0-") || line.startsWith("SSH-1.99-")) return line;
      if (line.startsWith("SSH-"))
        throw new ScanProtocolError(`the server speaks ${JSON.stringify(line)}, not SSH 2`);
      if (read > MAX_GREETING) break;
    }
    throw new ScanProtocolError(`no SSH version in the first ${MAX_GREETING} bytes`);
  }

  /** Sends one packet. The padding is zeroes: nothing is secret before encryption. */
  send(payload: Uint8Array): void {
    // Five bytes of header, and at least four of padding, up to a multiple of eight (RFC 4253 section 6).
    const padding = 4 + ((8 - ((payload.length + 5 + 4) % 8)) % 8);
    const header = Buffer.concat([uint32(payload.length + padding + 1), Buffer.from([padding])]);
    this.#wire.write(Buffer.concat([header, payload, Buffer.alloc(padding)]));
  }

  /** The payload of the next packet; IGNORE, UNIMPLEMENTED and DEBUG are skipped. */
  async receive(): Promise<Buffer> {
    for (;;) {
      const payload = await this.#packet();
      const type = payload[0];
      if (type === DISCONNECT) throw disconnected(payload);
      if (type !== IGNORE && type !== UNIMPLEMENTED && type !== DEBUG) return payload;
    }
  }

  /** The payload of the next packet. A length that no packet can have ends the scan before it is waited for. */
  async #packet(): Promise<Buffer> {
    await this.#need(5);
    const length = this.#buffer.readUInt32BE();
    const padding = this.#buffer[4]!;
    if (length > MAX_PACKET || length < padding + 2) {
      throw new ScanProtocolError(`an SSH packet of ${length} bytes with ${padding} bytes of padding`);
    }
    await this.#need(4 + length);
    const payload = Buffer.from(this.#buffer.subarray(5, 4 + length - padding));
    this.#buffer = this.#buffer.subarray(4 + length);
    return payload;
  }

  async #need(bytes: number): Promise<void> {
    while (this.#buffer.length < bytes) await this.#more("in the middle of the key exchange");
  }

  /** Reads one chunk. Rejects when the server closed its side, with the place in the exchange. */
  async #more(where: string): Promise<void> {
    const chunk = await this.#wire.read();
    if (chunk === undefined) throw new ScanProtocolError(`the server closed the connection ${where}`);
    this.#buffer = this.#buffer.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#buffer, chunk]);
  }
}

function disconnected(payload: Buffer): ScanProtocolError {
  const fields = new Fields(payload.subarray(1));
  const reason = fields.uint32();
  const text = JSON.stringify(fields.string().toString("utf8").slice(0, 200));
  return new ScanProtocolError(`the server disconnected with reason ${reason}: ${text}`);
}
