import {
  type Clock,
  type Connector,
  type Endpoint,
  type Link,
  type LinkHandlers,
  wire,
} from "../src/index.ts";

/** Time that moves only when told. */
export class ManualClock implements Clock {
  #now = 0;
  #timers = new Set<{ readonly at: number; readonly fn: () => void }>();

  now(): number {
    return 1_700_000_000_000 + this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  setTimer(ms: number, fn: () => void) {
    const timer = { at: this.#now + ms, fn };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Lets `ms` pass, firing what is due in order, with promise reactions in between. */
  async pass(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const due = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#now = Math.max(this.#now, due.at);
      due.fn();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets everything that is ready run. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}

export interface ReceivedRequest extends wire.RequestHeader {
  readonly request: wire.Request;
}

/** A server in memory that answers only what a test tells it to. */
export class FakeServer implements Connector {
  readonly endpoints: Endpoint[] = [];
  readonly connects: wire.ConnectRequest[] = [];
  readonly received: ReceivedRequest[] = [];
  /** How a handshake is answered, if at all; undefined refuses the connection. */
  welcome: ((request: wire.ConnectRequest) => wire.ConnectResponse | undefined) | undefined = () => ({
    protocolVersion: 0,
    timeOut: 9_000,
    sessionId: 7n,
    passwd: Buffer.alloc(16, 1),
    readOnly: false,
  });
  addresses: Record<string, readonly string[]> = {};
  #handlers: LinkHandlers | undefined;

  async resolve(host: string): Promise<readonly string[]> {
    const found = this.addresses[host];
    if (found?.length === 0) throw new Error(`${host} is unknown`);
    return found ?? [host];
  }

  open(endpoint: Endpoint, handlers: LinkHandlers): Link {
    this.endpoints.push(endpoint);
    let over = false;
    let shaken = false;
    const splitter = new wire.FrameSplitter(1 << 24, (bytes, start, end) => {
      const reader = new wire.JuteReader();
      reader.reset(bytes, start, end);
      if (shaken) {
        const { xid, type } = wire.requestHeader.read(reader);
        this.received.push({ xid, type, request: wire.readRequest(reader, type) });
        return;
      }
      shaken = true;
      const request = wire.connectRequest.read(reader);
      this.connects.push(request);
      const answer = this.welcome?.(request);
      if (answer !== undefined) this.frame((w) => wire.connectResponse.write(w, answer));
    });
    queueMicrotask(() => {
      if (over) return;
      this.#handlers = handlers;
      if (this.welcome === undefined) handlers.closed(new Error("refused"));
      else handlers.opened();
    });
    return {
      write: (bytes) => {
        splitter.push(Buffer.from(bytes));
        return true;
      },
      destroy: () => {
        over = true;
        if (this.#handlers === handlers) this.#handlers = undefined;
      },
    };
  }

  defer(fn: () => void): void {
    process.nextTick(fn);
  }

  /** Sends frames in one piece. */
  frame(...writes: readonly ((w: wire.JuteWriter) => void)[]): void {
    const writer = new wire.JuteWriter();
    for (const write of writes) {
      const mark = writer.beginFrame();
      write(writer);
      writer.endFrame(mark);
    }
    const bytes = Buffer.from(writer.written());
    queueMicrotask(() => this.#handlers?.received(bytes, bytes.length));
  }

  raw(bytes: Buffer): void {
    this.#handlers?.received(bytes, bytes.length);
  }

  cut(): void {
    const handlers = this.#handlers;
    this.#handlers = undefined;
    handlers?.closed(new Error("cut"));
  }

  /** The last request of that type. */
  last(type: wire.OpCode): ReceivedRequest {
    const found = this.received.findLast((one) => one.type === type);
    if (found === undefined) throw new Error(`the server has heard no ${wire.opName(type)}`);
    return found;
  }
}

export const STAT: wire.Stat = {
  czxid: 1n,
  mzxid: 1n,
  ctime: 0,
  mtime: 0,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  dataLength: 0,
  numChildren: 0,
  pzxid: 1n,
};

/** A reply with this body. */
export function reply<T extends wire.OpCode>(
  xid: number,
  type: T,
  body: wire.ResponseTo<T>,
  zxid = 1n,
): (w: wire.JuteWriter) => void {
  return (w) => {
    wire.replyHeader.write(w, { xid, zxid, err: 0 });
    wire.writeResponse(w, type, body);
  };
}
