import { systemClock } from "@nodeyard/runtime";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { requireSshd, startSshd } from "../../../../testing/sshd/index.ts";
import { connect } from "../src/edge/network.ts";
import { secrets } from "../src/edge/secrets.ts";
import { type Connect, createScanner, KeyscanError, type Wire } from "../src/index.ts";
import { greet, readHostKey } from "../src/ssh/handshake.ts";
import { KEY_TYPES } from "../src/ssh/proof.ts";

/** A peer that sends these chunks, whatever it is told, and then ends. */
function scripted(chunks: readonly Uint8Array[]): Wire {
  const rest = [...chunks];
  return { write() {}, read: async () => rest.shift(), close() {} };
}

/** An SSH packet around a payload, as a server would send it. */
function packet(payload: Uint8Array): Buffer {
  const padding = 4 + ((8 - ((payload.length + 9) % 8)) % 8);
  const header = Buffer.alloc(5);
  header.writeUInt32BE(payload.length + padding + 1);
  header[4] = padding;
  return Buffer.concat([header, payload, Buffer.alloc(padding)]);
}

const VERSION = Buffer.from("SSH-2.0-peer\r\n");
const list = (text: string) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, Buffer.from(text)]);
};
const KEXINIT = packet(
  Buffer.concat([
    Buffer.from([20]),
    Buffer.alloc(16),
    list("curve25519-sha256"),
    list("ssh-ed25519,ecdsa-sha2-nistp256,rsa-sha2-512"),
    ...Array.from({ length: 8 }, () => list("none")),
    Buffer.alloc(5),
  ]),
);

describe("whatever a peer sends", () => {
  const bytes = fc.uint8Array({ maxLength: 200 });

  test("before its version or its KEXINIT, the end is an error of ours", async () => {
    const starts = fc.constantFrom(Buffer.alloc(0), VERSION, Buffer.concat([VERSION, Buffer.from([0, 0])]));
    await fc.assert(
      fc.asyncProperty(starts, fc.array(bytes, { maxLength: 5 }), async (start, chunks) => {
        await expect(greet(scripted([start, ...chunks]))).rejects.toBeInstanceOf(KeyscanError);
      }),
      { numRuns: 300 },
    );
  });

  test("as its reply to the key exchange, the end is an error of ours", async () => {
    const string = bytes.map((value) =>
      Buffer.concat([list("x".repeat(value.length)).subarray(0, 4), value]),
    );
    const reply = fc
      .tuple(fc.constantFrom(31, 31, 31, 1, 21), fc.array(string, { maxLength: 4 }))
      .map(([type, fields]) => packet(Buffer.concat([Buffer.from([type]), ...fields])));
    await fc.assert(
      fc.asyncProperty(reply, fc.constantFrom(...KEY_TYPES), async (answer, type) => {
        const greeting = await greet(scripted([VERSION, KEXINIT, answer]));
        await expect(readHostKey(greeting, type, secrets)).rejects.toBeInstanceOf(KeyscanError);
      }),
      { numRuns: 300 },
    );
  });

  test("messages that mean nothing are passed over, a disconnect gives its text", async () => {
    const ignore = packet(Buffer.concat([Buffer.from([2]), list("noise")]));
    const debug = packet(Buffer.concat([Buffer.from([4, 0]), list("noise"), list("")]));
    const greeting = await greet(scripted([Buffer.from("hello\r\n"), VERSION, ignore, debug, KEXINIT]));
    expect(greeting.lists[1]).toEqual(["ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512"]);
    const text = Buffer.concat([Buffer.from([1, 0, 0, 0, 12]), list("Too many users"), list("")]);
    await expect(greet(scripted([VERSION, packet(text)]))).rejects.toThrow(/reason 12: "Too many users"/);
  });
});

describe.skipIf(requireSshd())("a real server's bytes", () => {
  test("may come one at a time", async () => {
    const sshd = await startSshd({ hostKeyTypes: ["ed25519", "ecdsa-521", "rsa"] });
    const slowly: Connect = async (to, port, signal) => {
      const wire = await connect(to, port, signal);
      let rest: Uint8Array = Buffer.alloc(0);
      return {
        ...wire,
        async read() {
          if (rest.length === 0) {
            const chunk = await wire.read();
            if (chunk === undefined) return undefined;
            rest = chunk;
          }
          const one = rest.subarray(0, 1);
          rest = rest.subarray(1);
          return one;
        },
      };
    };
    try {
      const scanner = createScanner({ clock: systemClock, connect: slowly });
      const target = { host: sshd.host, port: sshd.port, keys: true, timeoutMs: 10_000 };
      expect((await scanner.scan(target)).hostKeys).toEqual(sshd.hostKeys);
    } finally {
      await sshd.stop();
    }
  });
});
