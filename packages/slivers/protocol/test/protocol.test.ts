import { generateKeyPairSync, verify } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  GrammarError,
  type KeySet,
  openTicket,
  parseDocument,
  parseKeySet,
  parseSliver,
  rawPublicKey,
  rotate,
  SignatureError,
  type Signer,
  signerFromPem,
  signText,
  sshKey,
  verifyText,
} from "../src/index.ts";

const signerOf = (kid: string): Signer => ({ kid, privateKey: generateKeyPairSync("ed25519").privateKey });
const keySetOf = (...signers: Signer[]): KeySet => ({
  v: 1,
  version: 1,
  keys: signers.map(({ kid, privateKey }) => ({ kid, x: rawPublicKey(privateKey) })),
});
const a = signerOf("a");
const b = signerOf("b");
const keys = keySetOf(a, b);
const NOW = 1_700_000_000;

/** An SSH key blob of those fields. */
const blob = (...fields: (string | Buffer)[]) =>
  Buffer.concat(
    fields.flatMap((field) => {
      const bytes = Buffer.from(field as string);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  ).toString("base64");
const ED = `ssh-ed25519 ${blob("ssh-ed25519", Buffer.alloc(32, 7))}`;

describe("signed texts", () => {
  test("a text says what was signed, to those who know the key and for what it was meant", () =>
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = signText("document", value, a);
        expect(verifyText("document", text, keys, NOW)).toEqual(JSON.parse(JSON.stringify(value)));
        for (const purpose of ["ticket", "key-set"] as const)
          expect(() => verifyText(purpose, text, keys, NOW)).toThrow(SignatureError);
        expect(() => verifyText("document", text, keySetOf(b), NOW)).toThrow(SignatureError);
        expect(() => verifyText("document", text, keySetOf({ ...b, kid: "a" }), NOW)).toThrow(SignatureError);
      }),
      { numRuns: 30 },
    ));

  test("no character of it may change", () => {
    const text = signText("document", { x: 1 }, a);
    for (let at = 0; at < text.length; at++)
      for (const other of ["A", "B", ".", "=", " "]) {
        const changed = text.slice(0, at) + other + text.slice(at + 1);
        if (changed !== text)
          expect(() => verifyText("document", changed, keys, NOW)).toThrow(SignatureError);
      }
    for (const noise of ["", ".", "..", "...", `${text}\n`, `${text}.x`])
      expect(() => verifyText("document", noise, keys, NOW)).toThrow(SignatureError);
  });

  test("it is a plain JWS that others can check (RFC 7515, RFC 8037)", () => {
    const [head, body, signature] = signText("ticket", { x: 1 }, a).split(".") as [string, string, string];
    expect(JSON.parse(Buffer.from(head, "base64url").toString())).toEqual({
      alg: "EdDSA",
      typ: "nodeyard-sliver-ticket+jws",
      kid: "a",
    });
    const good = verify(
      null,
      Buffer.from(`${head}.${body}`),
      a.privateKey,
      Buffer.from(signature, "base64url"),
    );
    expect(good).toBe(true);
  });

  test("a key counts from its first second to its last", () => {
    const limited: KeySet = { ...keys, keys: [{ ...keys.keys[0]!, notBefore: NOW, notAfter: NOW + 10 }] };
    const text = signText("document", 1, a);
    for (const now of [NOW, NOW + 10]) expect(verifyText("document", text, limited, now)).toBe(1);
    for (const now of [NOW - 1, NOW + 11])
      expect(() => verifyText("document", text, limited, now)).toThrow(SignatureError);
  });

  test("the refusal of a key has the reason: unknown, not yet valid, or no longer valid", () => {
    const limited: KeySet = { ...keys, keys: [{ ...keys.keys[0]!, notBefore: NOW, notAfter: NOW + 10 }] };
    const reported = (by: typeof a, now: number) => {
      try {
        return verifyText("document", signText("document", 1, by), limited, now);
      } catch (error) {
        return (error as Error).message;
      }
    };
    const date = (seconds: number) => new Date(seconds * 1_000).toISOString();
    expect(reported({ ...a, kid: "z" }, NOW)).toContain(
      'no key "z" is valid now (key set 1 has a); is the node',
    );
    expect(reported(a, NOW - 1)).toContain(`no key "a" is valid now (it is from ${date(NOW)} on)`);
    expect(reported(a, NOW + 11)).toContain(`no key "a" is valid now (it was until ${date(NOW + 10)})`);
  });

  test("only Ed25519 keys sign", () => {
    const pem = (key: ReturnType<typeof generateKeyPairSync>["privateKey"]) =>
      key.export({ type: "pkcs8", format: "pem" }) as string;
    expect(signerFromPem("a", pem(a.privateKey)).kid).toBe("a");
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    expect(() => signerFromPem("a", pem(privateKey))).toThrow(SignatureError);
  });
});

describe("key sets", () => {
  test("only go forward, and never to a version that no member can use", () => {
    const next = { ...keys, version: 2 };
    expect(rotate(keys, next, NOW)).toBe(next);
    expect(() => rotate(next, next, NOW)).toThrow(/does not follow/);
    const ended = { ...next, keys: keys.keys.map((key) => ({ ...key, notAfter: NOW - 1 })) };
    expect(() => rotate(keys, ended, NOW)).toThrow(/trust no key/);
  });

  test("no key twice, none of another length, no set without one", () => {
    const [key] = keys.keys;
    expect(parseKeySet(keys)).toEqual(keys);
    for (const list of [
      [],
      [key, key],
      [{ ...key, x: "AAAA" }],
      [{ ...key, notAfter: 1e15 }],
      [{ ...key, alg: "none" }],
    ])
      expect(() => parseKeySet({ ...keys, keys: list })).toThrow(GrammarError);
  });
});

describe("tickets", () => {
  const claims = {
    iss: "i",
    aud: "n",
    iat: NOW,
    nbf: NOW,
    exp: NOW + 60,
    jti: "x".repeat(16),
    epoch: 1,
    version: 1,
  };
  const sliver = { name: "ada", generation: 1, instantiation: "delegated" };
  const open = (more: object, now = NOW) =>
    openTicket(signText("ticket", { ...claims, sliver, ...more }, a), keys, "n", now);

  test("are for one node and for their time, with half a minute for clocks", () => {
    expect(open({}).sliver).toMatchObject(sliver);
    for (const now of [NOW - 30, NOW + 89]) expect(open({}, now).jti).toBe(claims.jti);
    for (const now of [NOW - 31, NOW + 90]) expect(() => open({}, now)).toThrow(/becomes valid in|expired/);
    expect(() => open({ aud: "m" })).toThrow(/for node m/);
    for (const exp of [NOW, NOW + 901, NOW - 5]) expect(() => open({ exp })).toThrow(/is valid for/);
    for (const bad of [{ jti: "x" }, { sliver: {} }, { extra: 1 }, { version: -1 }])
      expect(() => open(bad)).toThrow(GrammarError);
  });
});

describe("the grammar of documents", () => {
  const doc = (slivers: unknown[], more: object = {}) =>
    parseDocument({ v: 1, node: "n", epoch: 1, version: 1, issuedAt: 0, slivers, ...more });
  const good = { name: "ada", generation: 1, instantiation: "plc-instantiated" };

  test("one sliver that is malformed is said by its place, and the others are there", () => {
    const document = doc([good, { ...good, name: "bob", rspec: { cpuShare: -1 } }, { name: "../x" }, null]);
    expect(document.slivers).toHaveLength(1);
    expect(document.malformed).toMatchObject([
      { name: "bob", reason: "rspec.cpuShare: is -1, but must be at least 0" },
      {},
      {},
    ]);
  });

  test("what is not known is not guessed at", () => {
    for (const more of [
      { isolation: "none" },
      { rspec: { cpu: 1 } },
      { _loans: [] },
      { image: "../../etc" },
      { image: "/etc" },
      { keys: ["no-pty x"] },
    ])
      expect(() => parseSliver({ ...good, ...more }), JSON.stringify(more)).toThrow(GrammarError);
    for (const more of [{ v: 2 }, { node: "a b" }, { epoch: 1.5 }, { version: -1 }, { other: 1 }])
      expect(() => doc([], more)).toThrow(GrammarError);
    expect(parseSliver({ ...good, image: `sha256:${"a".repeat(64)}` }).image).toMatch(/^sha256/);
  });

  test("no name means anything to a path, a shell or a rule", () =>
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary" }),
          fc.constantFrom("root", "control", "policy", "a\n", "..", "a/b", ""),
        ),
        (name) => {
          try {
            expect(parseSliver({ ...good, name }).name).toMatch(/^[a-z][a-z0-9_]{0,31}$/);
            expect(["root", "control", "policy"]).not.toContain(name);
          } catch (error) {
            expect(error).toBeInstanceOf(GrammarError);
          }
        },
      ),
    ));

  test("a key is one line of type and data, whatever was around it", () => {
    expect(sshKey(` ${ED} me@home `)).toBe(ED);
    const types: [string, ...(string | Buffer)[]][] = [
      ["ssh-rsa", "e", "n"],
      ["ecdsa-sha2-nistp256", "nistp256", "q"],
      ["sk-ssh-ed25519@openssh.com", "k", "ssh:"],
      ["sk-ecdsa-sha2-nistp256@openssh.com", "nistp256", "q", "ssh:"],
    ];
    for (const [type, ...rest] of types)
      expect(sshKey(`${type} ${blob(type, ...rest)}`)).toBe(`${type} ${blob(type, ...rest)}`);
    const bad = [
      `command="x" ${ED}`,
      `no-pty ${ED}`,
      `${ED}\ncommand="x" ${ED}`,
      `${ED} a\0b`,
      `ssh-rsa ${blob("ssh-ed25519", "x", "y")}`,
      `ssh-ed25519 ${blob("ssh-ed25519")}`,
      `ssh-ed25519 ${blob("ssh-ed25519", "a", "b")}`,
      "ssh-ed25519 AAAA",
      "ssh-dss AAAA",
      "ssh-ed25519",
      "",
    ];
    for (const line of bad) expect(() => sshKey(line), line).toThrow(GrammarError);
  });

  test("no text makes a key line that is more than a key", () =>
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (before, after) => {
        try {
          expect(sshKey(before + ED + after)).toMatch(/^[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}$/);
        } catch (error) {
          expect(error).toBeInstanceOf(GrammarError);
        }
      }),
    ));
});
