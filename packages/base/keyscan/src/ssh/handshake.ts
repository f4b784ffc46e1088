import { createHash } from "node:crypto";
import type { DhGroup, ExchangeMethod, Wire } from "../contract.ts";
import { NoCommonAlgorithmError, ScanProtocolError } from "../errors.ts";
import { Fields, mpint, nameList, string, uint32 } from "./bytes.ts";
import { checkProof, type KeyType } from "./proof.ts";
import { Transport } from "./transport.ts";

const KEXINIT = 20;
/** Numbers of the client's value and the server's reply (RFC 4253, 12; RFC 5656, 7.1), and those after a question for a group. */
const EXCHANGE = { init: 30, reply: 31 };
const GROUP_EXCHANGE = { init: 32, reply: 33 };
/** The question for a group, and its answer (RFC 4419, 5). */
const GROUP_REQUEST = 34;
const GROUP_REPLY = 31;
/** Bits of a prime: least, preferred, most. The least is what old appliances have, the most what OpenSSH accepts. */
const GROUP_BITS = [1024, 2048, 8192] as const;
/** Random bytes after the number of a KEXINIT (RFC 4253, 7.1). They are not looked at. */
const COOKIE_BYTES = 16;

/** The cryptographic functions of a handshake; they need randomness, so they are made in `edge/`. */
export interface Secrets {
  /** Key exchange methods, the preferred one first. */
  readonly methods: readonly ExchangeMethod[];
  cookie(): Uint8Array;
}

/** A server that has sent its list of algorithms. No algorithm is chosen yet. */
export interface Greeting {
  readonly transport: Transport;
  readonly serverVersion: string;
  /** The server's complete KEXINIT, because the server's signature covers it. */
  readonly kexinit: Buffer;
  /** The ten name lists of the KEXINIT (RFC 4253 7.1); the first is key exchange, the second host keys. */
  readonly lists: readonly (readonly string[])[];
}

/** Exchanges versions and reads the server's KEXINIT, which it sends without being asked. This needs no cryptography of the server. */
export async function greet(wire: Wire): Promise<Greeting> {
  const transport = new Transport(wire);
  const serverVersion = await transport.version();
  const kexinit = await transport.receive();
  if (kexinit[0] !== KEXINIT) {
    throw new ScanProtocolError(`the server began with SSH message ${kexinit[0]}, not with KEXINIT`);
  }
  const fields = new Fields(kexinit.subarray(1 + COOKIE_BYTES));
  const lists = Array.from({ length: 10 }, () => fields.nameList());
  return { transport, serverVersion, kexinit, lists };
}

/**
 * Runs the key exchange up to the server's reply, which contains its key of `type` and the proof of ownership, and stops
 * there, before encryption would begin. Returns "<type> <base64>".
 */
export async function readHostKey(greeting: Greeting, type: KeyType, secrets: Secrets): Promise<string> {
  const { transport, lists } = greeting;
  // The client's order counts (RFC 4253, 7.1). The server finds the same method, as ours is the only one that it is offered.
  const method = secrets.methods.find((candidate) => lists[0]!.includes(candidate.name));
  if (method === undefined) {
    throw new NoCommonAlgorithmError(
      `no key exchange method in common; the server has ${lists[0]!.join(", ")}`,
    );
  }
  const ours = ourKexinit(greeting, method.name, type, secrets.cookie());
  transport.send(ours);
  const asked = method.asksForGroup ? await askForGroup(transport) : undefined;
  const encoders = { mpint, string };
  const agreement = serversHalf(() => method.start(asked?.group));
  const publicValue = encoders[method.encoding](agreement.publicValue);
  const numbers = asked === undefined ? EXCHANGE : GROUP_EXCHANGE;
  transport.send(Buffer.concat([Buffer.from([numbers.init]), publicValue]));

  const fields = await answer(transport, numbers.reply);
  const [key, peer, signature] = [fields.string(), fields.string(), fields.string()];
  // The exchange hash (RFC 4253, 8; RFC 4419, 3; RFC 5656, 4): versions, both KEXINITs, key, group, both public values, shared secret.
  const hash = createHash(method.hash)
    .update(string(transport.clientVersion))
    .update(string(greeting.serverVersion))
    .update(string(ours))
    .update(string(greeting.kexinit))
    .update(string(key))
    .update(asked?.hashed ?? "")
    .update(publicValue)
    .update(string(peer))
    .update(encoders[method.secretEncoding](serversHalf(() => agreement.agree(peer))))
    .digest();
  checkProof(type, key, signature, hash);
  return `${type.name} ${key.toString("base64")}`;
}

/** The group that the server chooses, and what the exchange hash covers of question and answer. */
async function askForGroup(
  transport: Transport,
): Promise<{ readonly group: DhGroup; readonly hashed: Buffer }> {
  const question = Buffer.concat(GROUP_BITS.map(uint32));
  transport.send(Buffer.concat([Buffer.from([GROUP_REQUEST]), question]));
  const fields = await answer(transport, GROUP_REPLY);
  const [prime, generator] = [fields.string(), fields.string()];
  return {
    group: { prime, generator },
    hashed: Buffer.concat([question, string(prime), string(generator)]),
  };
}

/** The fields of the next message, which must have this number. */
async function answer(transport: Transport, number: number): Promise<Fields> {
  const reply = await transport.receive();
  if (reply[0] !== number) {
    throw new ScanProtocolError(`the server answered the key exchange with SSH message ${reply[0]}`);
  }
  return new Fields(reply.subarray(1));
}

/** Runs a step on what the server sent. A value that is no point of the curve, or out of range, is an error of the server. */
function serversHalf<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw new ScanProtocolError("the server's half of the key exchange is not valid", { cause: error });
  }
}

/** Repeats the server's own ciphers, MACs and compressions: both sides must agree on them, although none is used. */
function ourKexinit(greeting: Greeting, method: string, type: KeyType, cookie: Uint8Array): Buffer {
  const keyAlgorithms = type.algorithms.filter((name) => greeting.lists[1]!.includes(name));
  const lists = [[method], keyAlgorithms, ...greeting.lists.slice(2, 8), [], []];
  return Buffer.concat([Buffer.from([KEXINIT]), cookie, ...lists.map(nameList), Buffer.from([0]), uint32(0)]);
}
