import { createHash } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer as createPort } from "node:net";

/** Whatever the cloud has: a machine, an address, an image. */
export interface Kept {
  readonly id: string;
  readonly state: string;
  labels: Readonly<Record<string, string>>;
  readonly token?: string;
  readonly size?: string | number;
  readonly machine?: string | null;
  readonly data?: Buffer;
  /** Where clients find it, and in which zone it is. */
  readonly host?: string;
  readonly port?: number;
  readonly zone?: string;
}

type Answer = readonly [status: number, body: object];

const SIZES = [
  { name: "lamb", cores: 1, ram: 512 },
  { name: "sheep", cores: 2, ram: 2_048 },
];
const GONE: Answer = [404, { code: "gone", message: "there is no such thing" }];
/** Things in one page of a list. */
const PAGE = 3;

/** The made-up cloud. It forgets everything when it ends. */
export class Meadow {
  readonly machines = new Map<string, Kept>();
  readonly addresses = new Map<string, Kept>();
  readonly images = new Map<string, Kept>();
  /** Most machines. */
  quota = 8;
  /** How many calls that list machines are still to fail. */
  failing = 0;
  readonly #token: string;
  #count = 0;
  readonly #api = createServer(async (request, response) => {
    const [status, body] = await this.#answer(request).catch(
      (error): Answer => [400, { message: `${error}` }],
    );
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  /** Clients of all machines connect to it. One that resets its connection, as a look whether the port is open may, is no fault. */
  readonly #door = createPort((socket) => socket.on("error", () => {}).end("baa\n"));

  constructor(token: string) {
    this.#token = token;
  }

  /** Resolves to the address of the API. */
  async start(port = 0): Promise<string> {
    for (const [server, at] of [
      [this.#door, 0],
      [this.#api, port],
    ] as const)
      await new Promise<void>((resolve) => server.listen(at, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#api.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#door.close();
    this.#api.close();
    this.#api.closeAllConnections();
  }

  make(order: object): Answer {
    if (this.machines.size >= this.quota)
      return [409, { code: "quota", message: "the account has no more machines" }];
    const { port } = this.#door.address() as AddressInfo;
    return this.#keep(this.machines, { zone: "north", state: "running", host: "127.0.0.1", port, ...order });
  }

  /** One that was made with the same token is that one. */
  #keep(kind: Map<string, Kept>, order: Partial<Kept>): Answer {
    const known = [...kind.values()].find(({ token }) => token !== undefined && token === order.token);
    if (known !== undefined) return [200, known];
    const made = { state: "ready", labels: {}, ...order, id: `${++this.#count}` };
    kind.set(made.id, made);
    return [201, made];
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://meadow");
    const [, kind = "", id, what] = pathname.split("/");
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body =
      chunks.length === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString()) as Record<string, never>);
    if (request.headers.authorization !== `Bearer ${this.#token}`) return [401, { message: "who are you?" }];
    const after = Number(searchParams.get("after") ?? 0);
    if (id === undefined && request.method === "GET") return this.#list(kind, after);
    const things = { machines: this.machines, addresses: this.addresses, images: this.images }[kind];
    if (things === undefined) return GONE;
    if (request.method === "POST") {
      if (kind === "machines") return this.make(body);
      const more = kind === "addresses" ? { host: "127.0.0.1" } : { state: "open", data: Buffer.alloc(0) };
      return this.#keep(things, { ...body, ...more });
    }
    const thing = things.get(id ?? "");
    if (thing === undefined) return GONE;
    if (request.method === "DELETE") things.delete(thing.id);
    if (request.method === "PUT") things.set(thing.id, written(thing, body as never));
    return [
      200,
      what === "console" ? { text: "the machine bleats\n" } : { ...things.get(thing.id), data: undefined },
    ];
  }

  #list(kind: string, after: number): Answer {
    if (kind === "quota") return [200, { instances: this.quota }];
    if (kind === "sizes") return [200, { all: SIZES }];
    if (kind === "zones") return [200, { all: ["north", "south"] }];
    if (kind === "machines" && this.failing-- > 0) return [500, { message: "the shepherd sleeps" }];
    const things = { machines: this.machines, addresses: this.addresses, images: this.images }[kind];
    if (things === undefined) return GONE;
    const left = [...things.values()].filter((thing) => Number(thing.id) > after);
    const all = left.slice(0, PAGE).map((thing) => ({ ...thing, data: undefined }));
    const next = left.length > PAGE ? `/${kind}?after=${all.at(-1)?.id}` : undefined;
    return [200, { all, next }];
  }
}

/** An image with a piece more, and ready with the last one. */
function written(image: Kept, { at, data }: { readonly at: number; readonly data: string }): Kept {
  const piece = Buffer.from(data, "base64");
  const whole = Buffer.concat([(image.data ?? Buffer.alloc(0)).subarray(0, at), piece]);
  const sha256 = createHash("sha256").update(whole).digest("hex");
  const state = whole.byteLength >= Number(image.size) ? "ready" : "open";
  return { ...image, data: whole, state, ...{ sha256 } };
}
