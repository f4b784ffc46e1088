import { type IncomingMessage, request } from "node:http";
import { constants, createGunzip } from "node:zlib";

/** One server-sent event. */
export interface ReceivedEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: {
    readonly kind?: string;
    readonly id?: string;
    readonly row?: Readonly<Record<string, unknown>>;
  };
}

/** Follows events as a browser does, and keeps the picture that they draw. */
export class EventClient {
  readonly reported: ReceivedEvent[] = [];
  /** Rows by `kind/id`. */
  readonly picture = new Map<string, Readonly<Record<string, unknown>>>();
  /** As a browser sends it again. */
  last: string | undefined;
  status: number | undefined;
  #response: IncomingMessage | undefined;
  #pending = "";
  #ended: Promise<void> = Promise.resolve();

  /** Connects, and resolves when all there is was sent, or what was missed follows. */
  async connect(address: string, path = "/v1/events", headers: Readonly<Record<string, string>> = {}) {
    this.#pending = "";
    const where = address.startsWith("unix:")
      ? { socketPath: address.slice(5) }
      : { host: "127.0.0.1", port: new URL(address).port };
    const resume = this.last === undefined ? {} : { "last-event-id": this.last };
    const sent = request({ ...where, path, headers: { ...headers, ...resume }, agent: false });
    sent.end();
    const response = await new Promise<IncomingMessage>((resolve, reject) =>
      sent.once("response", resolve).once("error", reject),
    );
    this.status = response.statusCode;
    this.#response = response;
    this.#ended = new Promise((resolve) => response.once("close", resolve).on("error", () => {}));
    // A stream of events ends without the end of its gzip.
    const text =
      response.headers["content-encoding"] === "gzip"
        ? response.pipe(createGunzip({ finishFlush: constants.Z_SYNC_FLUSH }))
        : response;
    text.setEncoding("utf8").on("data", (more: string) => this.#take(more));
  }

  /** Resolves when the server ends it. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  async cut(): Promise<void> {
    this.#response?.destroy();
    await this.#ended;
  }

  #take(text: string): void {
    const blocks = (this.#pending + text).split("\n\n");
    this.#pending = blocks.pop()!;
    for (const block of blocks) this.#block(block);
  }

  #block(block: string): void {
    const fields = new Map(
      block
        .split("\n")
        .filter((line) => !line.startsWith(":"))
        .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)] as const),
    );
    const id = fields.get("id");
    if (id !== undefined) this.last = id;
    const data = fields.get("data");
    if (data === undefined) return;
    const reported: ReceivedEvent = { id, event: fields.get("event") ?? "message", data: JSON.parse(data) };
    this.reported.push(reported);
    const key = `${reported.data.kind}/${reported.data.id}`;
    if (reported.event === "put") this.picture.set(key, reported.data.row!);
    else if (reported.event === "remove") this.picture.delete(key);
    else if (reported.event === "gap") this.picture.clear();
  }

  count(event: string): number {
    return this.reported.filter((one) => one.event === event).length;
  }
}
