import { connect, type Socket } from "node:net";
import { wire } from "@nodeyard/zookeeper";

/** A client that can misbehave: it speaks frames, and reads only when told to. */
export class RawClient {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  readonly #frames: Buffer[] = [];
  #waiting: ((frame: Buffer | undefined) => void)[] = [];
  #over = false;

  constructor(port: number) {
    this.socket = connect({ port, host: "127.0.0.1" });
    this.socket.on("error", () => undefined);
    const splitter = new wire.FrameSplitter(1 << 30, (bytes, start, end) => {
      const frame = Buffer.from(bytes.subarray(start, end));
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#frames.push(frame);
      else waiting(frame);
    });
    this.socket.on("data", (bytes: Buffer) => splitter.push(bytes));
    this.closed = new Promise((resolve) =>
      this.socket.once("close", () => {
        this.#over = true;
        for (const waiting of this.#waiting.splice(0)) waiting(undefined);
        resolve();
      }),
    );
  }

  /** Sends a frame. */
  send(body: (writer: wire.JuteWriter) => void): void {
    const writer = new wire.JuteWriter();
    const mark = writer.beginFrame();
    body(writer);
    writer.endFrame(mark);
    this.socket.write(writer.written());
  }

  /** The next frame; undefined when the connection is over. */
  frame(): Promise<Buffer | undefined> {
    const frame = this.#frames.shift();
    if (frame !== undefined || this.#over) return Promise.resolve(frame);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** The handshake; undefined when the server hangs up instead. */
  async connect(request: Partial<wire.ConnectRequest> = {}): Promise<wire.ConnectResponse | undefined> {
    this.send((writer) =>
      wire.connectRequest.write(writer, {
        protocolVersion: 0,
        lastZxidSeen: 0n,
        timeOut: 10_000,
        sessionId: 0n,
        passwd: new Uint8Array(16),
        readOnly: false,
        ...request,
      }),
    );
    const frame = await this.frame();
    return frame === undefined ? undefined : wire.connectResponse.read(new wire.JuteReader(frame));
  }

  request(xid: number, request: wire.Request): void {
    this.send((writer) => {
      wire.requestHeader.write(writer, { xid, type: request.type });
      wire.writeRequest(writer, request);
    });
  }

  /** Sends a request and returns the header of the next frame. */
  async ask(xid: number, request: wire.Request): Promise<wire.ReplyHeader | undefined> {
    this.request(xid, request);
    return this.header();
  }

  async header(): Promise<wire.ReplyHeader | undefined> {
    const frame = await this.frame();
    return frame === undefined ? undefined : wire.replyHeader.read(new wire.JuteReader(frame));
  }

  destroy(): void {
    this.socket.destroy();
  }
}
