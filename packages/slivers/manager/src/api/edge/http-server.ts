import { createHash, timingSafeEqual } from "node:crypto";
import { isIPv4, isIPv6, Server, type Socket } from "node:net";
import { type Caller, isTrusted } from "../../core/permit.ts";
import { NotLoopbackError } from "../../errors.ts";
import type { CallBudget } from "../call-budget.ts";
import { type Handler, plain } from "../handler.ts";
import { METHODS } from "../methods/index.ts";
import { type Conversation, serveHttp } from "./http.ts";
import type { Reader } from "./reader/reader.ts";

/** A token for calls over TCP. Only its digest is stored. */
export interface TokenAccount {
  /** SHA-256 of the token, hexadecimal. */
  readonly sha256: string;
  /** The caller; undefined when the account has ended. */
  readonly caller: () => Caller | undefined;
}

/** The caller of requests without a valid token. */
const ANONYMOUS: Caller = { account: "anonymous", role: "anonymous", generation: 0 };

/** The caller of this `Authorization` header; ANONYMOUS when the header is absent or wrong. */
function callerOfToken(tokens: readonly TokenAccount[], authorization: string | undefined): Caller {
  const token = /^Bearer ([\x21-\x7e]{1,256})$/.exec(authorization ?? "")?.[1];
  if (token === undefined) return ANONYMOUS;
  const shown = createHash("sha256").update(token).digest();
  const known = tokens.find(({ sha256 }) => {
    const wanted = Buffer.from(sha256, "hex");
    return wanted.length === shown.length && timingSafeEqual(wanted, shown);
  });
  return known?.caller() ?? ANONYMOUS;
}

/** Longest body of a call by role, in bytes. Only the launcher's account and root send documents. */
const MAX_BODY = {
  root: 10 * 1024 * 1024,
  control: 10 * 1024 * 1024,
  controller: 1024 * 1024,
  sliver: 128 * 1024,
  anonymous: 4 * 1024,
} as const satisfies Record<Caller["role"], number>;

/** Connections of one account at a time. */
const MAX_CONNECTIONS = 32;
/** Of a sliver. A call may wait for the machine for two minutes, and a sliver may make several. */
const SLIVER_CONNECTIONS = 8;

/** What is done with requests, and the process in which those of strangers are parsed. */
export interface Intake {
  readonly handler: Handler;
  readonly budget: CallBudget;
  readonly reader: Pick<Reader, "take">;
}

/** A server whose connections end with it. */
export type AccountServer = Server & { closeAllConnections(): void };

/**
 * A server of one account that does not listen yet. The account is charged when it connects, for the first call. What slivers and
 * controllers write is parsed in another process; root and the launcher are who this process obeys.
 */
export function accountServer(intake: Intake, caller: Caller): AccountServer {
  const { budget, reader } = intake;
  const callerOf = () => caller;
  const server = isTrusted(caller)
    ? serveHttp(() => conversation(intake, callerOf, false))
    : new RelayServer((socket) => {
        reader.take(socket, conversation(intake, callerOf, budget.spend(caller, 1)));
      });
  server.on("drop", () => budget.refuse(caller));
  server.maxConnections = caller.role === "sliver" ? SLIVER_CONNECTIONS : MAX_CONNECTIONS;
  return server;
}

/** `isPaid`: the first call was charged with the connection. */
function conversation(
  { handler, budget }: Intake,
  callerOf: (authorization: string | undefined) => Caller,
  isPaid: boolean,
): Conversation {
  let paid = isPaid;
  return {
    admit: async ({ length, chunked, authorization }) => {
      const caller = callerOf(authorization);
      const isLong = length > MAX_BODY[caller.role];
      const calls = paid ? 0 : 1;
      paid = false;
      if (!budget.spend(caller, calls, isLong ? 0 : length)) return 429;
      if (!chunked && !isLong) return undefined;
      budget.refuse(caller);
      return chunked ? 411 : 413;
    },
    answer: async (request, authorization) => {
      const caller = callerOf(authorization);
      const changes = METHODS.get(request.call?.method ?? "")?.changes === true;
      if (changes && !budget.spendChange(caller)) return plain(429, "too many changes; wait some seconds\n");
      const response = await handler(request, caller);
      if (response.status !== 200) budget.refuse(caller);
      return response;
    },
    malformed: () => budget.refuse(callerOf(undefined)),
  };
}

/** Accepts connections for somebody else to read. */
class RelayServer extends Server {
  readonly #open = new Set<Socket>();

  constructor(take: (socket: Socket) => void) {
    super({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
      this.#open.add(socket);
      socket.once("close", () => this.#open.delete(socket));
      socket.on("error", () => socket.destroy());
      take(socket);
    });
  }

  closeAllConnections(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

/** Listens on loopback, for those who show a token; everybody else gets the answer of `Help`. Throws NotLoopbackError. */
export async function listenTcp(
  intake: Intake,
  host: string,
  port: number,
  tokens: readonly TokenAccount[],
): Promise<AccountServer> {
  const loopback = (isIPv4(host) && host.startsWith("127.")) || (isIPv6(host) && host === "::1");
  if (!loopback)
    throw new NotLoopbackError(`the API listens on loopback only, not on ${host}; reach it over SSH`);
  /** The oldest first. They make room for the next, so that strangers who only connect do not keep out who has a token. */
  const strangers = new Set<Socket>();
  const server = new RelayServer((socket) => {
    strangers.add(socket);
    socket.once("close", () => strangers.delete(socket));
    const [oldest] = strangers;
    if (strangers.size > MAX_CONNECTIONS) oldest?.destroy();
    const callerOf = (authorization: string | undefined) => {
      const caller = callerOfToken(tokens, authorization);
      if (caller !== ANONYMOUS) strangers.delete(socket);
      return caller;
    };
    intake.reader.take(socket, conversation(intake, callerOf, false));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return server;
}
