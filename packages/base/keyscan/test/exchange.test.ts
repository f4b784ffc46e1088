import {
  createHash,
  diffieHellman,
  encapsulate,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto";
import type { Socket } from "node:net";
import { systemClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import type { Wire } from "../src/index.ts";
import { createScanner } from "../src/index.ts";
import { Fields, mpint, nameList, string } from "../src/ssh/bytes.ts";
import { Transport } from "../src/ssh/transport.ts";
import { serve } from "./servers.ts";

const scan = (port: number) =>
  createScanner({ clock: systemClock }).scan({ host: "127.0.0.1", port, keys: true, timeoutMs: 1_500 });

/** The server's side of a connection, up to the client's KEXINIT. */
async function greeted(socket: Socket, method: string) {
  const chunks: AsyncIterator<Buffer> = socket[Symbol.asyncIterator]();
  const wire: Wire = {
    write: (bytes) => void socket.write(bytes),
    read: async () => (await chunks.next()).value,
    close: () => void socket.destroy(),
  };
  const transport = new Transport(wire);
  const clientVersion = await transport.version();
  const lists = [[method], ["ssh-ed25519"], ["c"], ["c"], ["m"], ["m"], ["none"], ["none"], [], []];
  const ours = Buffer.concat([Buffer.from([20]), Buffer.alloc(16), ...lists.map(nameList), Buffer.alloc(5)]);
  transport.send(ours);
  const theirs = await transport.receive();
  const start = [clientVersion, transport.clientVersion, theirs, ours].map((part) => string(part));
  return { transport, start: Buffer.concat(start) };
}

/** A server that plays `script` once it has the client's KEXINIT. The scan breaks most connections off, which ends the script. */
const play = (method: string, script: (side: Awaited<ReturnType<typeof greeted>>) => Promise<void>) =>
  serve(
    (socket) =>
      void greeted(socket, method)
        .then(script, () => {})
        .catch(() => {}),
  );

const number = (hex: string) => Buffer.from(hex, "hex");
const ODD_2048 = number(`f${"0".repeat(510)}1`);

describe("a server that chooses the group", () => {
  test.each([
    ["of 512 bits", number(`f${"0".repeat(126)}1`), number("02")],
    [
      "of more bits than OpenSSH takes, which would cost minutes",
      number(`f${"0".repeat(4094)}1`),
      number("02"),
    ],
    ["of an even number", number(`f${"0".repeat(511)}`), number("02")],
    ["of zero", number("00"), number("02")],
    ["with the generator 1", ODD_2048, number("01")],
    ["with a generator beyond it", ODD_2048, Buffer.concat([number("01"), ODD_2048])],
  ])("%s is refused before anything is computed", async (_what, prime, generator) => {
    const server = await play("diffie-hellman-group-exchange-sha256", async ({ transport }) => {
      await transport.receive();
      transport.send(Buffer.concat([Buffer.from([31]), mpint(prime), mpint(generator)]));
    });
    const error = await scan(server.port).catch((reason) => reason);
    expect(error).toMatchObject({ code: "keyscan.timeout", cause: { code: "keyscan.protocol" } });
    await server.stop();
  });

  test.each(["00", "01"])("and answers with %s is refused", async (value) => {
    const server = await play("diffie-hellman-group-exchange-sha256", async ({ transport }) => {
      await transport.receive();
      transport.send(Buffer.concat([Buffer.from([31]), mpint(ODD_2048), mpint(number("02"))]));
      await transport.receive();
      transport.send(
        Buffer.concat([Buffer.from([33]), ...["k", number(value), "s"].map((part) => string(part))]),
      );
    });
    const error = await scan(server.port).catch((reason) => reason);
    expect(error.cause).toMatchObject({ message: "the server's half of the key exchange is not valid" });
    await server.stop();
  });
});

// OpenSSH has this method from 9.9 on; the server here is made of the draft, beside a trial with the one of golang.org/x/crypto.
describe("a server with mlkem768x25519-sha256 alone", () => {
  const host = generateKeyPairSync("ed25519");
  const key = Buffer.concat([string("ssh-ed25519"), string(raw(host.publicKey))]);

  test.each([true, false])("shows its key, if it can prove it (%s)", async (isHonest) => {
    const server = await play("mlkem768x25519-sha256", async ({ transport, start }) => {
      const theirs = new Fields((await transport.receive()).subarray(1)).string();
      const [quantum, classic] = [theirs.subarray(0, 1184), theirs.subarray(1184)];
      const { sharedKey, ciphertext } = encapsulate(
        spki("308204b2300b0609608648016503040402038204a100", quantum),
      );
      const own = generateKeyPairSync("x25519");
      const shared = diffieHellman({
        privateKey: own.privateKey,
        publicKey: spki("302a300506032b656e032100", classic),
      });
      const answer = Buffer.concat([ciphertext, raw(own.publicKey)]);
      const secret = createHash("sha256").update(sharedKey).update(shared).digest();
      const hashed = Buffer.concat([start, ...[key, theirs, answer, secret].map((part) => string(part))]);
      const hash = createHash("sha256").update(hashed).digest();
      if (!isHonest) hash[0]! ^= 1;
      const signature = Buffer.concat([string("ssh-ed25519"), string(sign(null, hash, host.privateKey))]);
      transport.send(
        Buffer.concat([Buffer.from([31]), ...[key, answer, signature].map((part) => string(part))]),
      );
    });
    const result = await scan(server.port).catch((reason) => reason);
    if (isHonest) expect(result.hostKeys).toEqual([`ssh-ed25519 ${key.toString("base64")}`]);
    else expect(result).toMatchObject({ code: "keyscan.host_key_proof" });
    await server.stop();
  });
});

function raw(publicKey: KeyObject): Buffer {
  return publicKey.export({ format: "der", type: "spki" }).subarray(-32);
}

/** A public key from its raw bytes, behind the header that its algorithm has in DER. */
function spki(header: string, bytes: Buffer) {
  return {
    key: Buffer.concat([number(header), bytes]),
    format: "der" as const,
    type: "spki" as const,
  };
}
