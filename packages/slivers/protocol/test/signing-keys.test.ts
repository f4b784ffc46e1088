import { generateKeyPairSync } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createSigningKeys,
  decodeSigningKeys,
  deliverKeys,
  encodeSigningKeys,
  type KeySet,
  newSigningKeys,
  parseKeySet,
  readSigningKeys,
  rotate,
  rotateSigningKeys,
  rotateSigningKeysFile,
  rotationsAfter,
  type SigningKeys,
  SliverClient,
  SliverFaultError,
  signerOf,
  signText,
  verifyText,
} from "../src/index.ts";

const NOW = 1_700_000_000;
const key = () => generateKeyPairSync("ed25519").privateKey;

/** What a node does with a signed key set. */
const taken = (current: KeySet, signed: string, now: number): KeySet =>
  rotate(current, parseKeySet(verifyText("key-set", signed, current, now)), now);

describe("signing keys", () => {
  test("a machine that was away catches up step by step, and then trusts the present keys and none that has ended", () =>
    fc.assert(
      fc.property(
        fc.array(fc.record({ after: fc.nat(1000), overlap: fc.nat(2000) }), { minLength: 1, maxLength: 12 }),
        fc.nat(12),
        (rotations, seen) => {
          let keys = newSigningKeys(key());
          let now = NOW;
          const sets = [keys.keySet];
          const signers = [signerOf(keys)];
          for (const { after, overlap } of rotations) {
            now += after;
            keys = rotateSigningKeys(keys, key(), { now, overlap });
            sets.push(keys.keySet);
            signers.push(signerOf(keys));
          }
          let node = sets[Math.min(seen, sets.length - 1)]!;
          // A node believes a step only while the key that signed it is valid there: it catches up soon enough here.
          for (const signed of rotationsAfter(keys, node.version)) node = taken(node, signed, NOW);
          expect(node).toEqual(keys.keySet);
          expect(verifyText("document", signText("document", 1, signerOf(keys)), node, now)).toBe(1);
          const ended = now + 5000;
          for (const old of signers.slice(0, -1))
            expect(() => verifyText("document", signText("document", 1, old), node, ended)).toThrow();
          expect(decodeSigningKeys(encodeSigningKeys(keys))).toEqual(keys);
        },
      ),
      { numRuns: 40 },
    ));

  test("without overlap the key before is gone with the step", () => {
    const first = newSigningKeys(key());
    const second = rotateSigningKeys(first, key(), { now: NOW, overlap: 0 });
    expect(second.keySet.keys.map(({ kid }) => kid)).toEqual([second.kid]);
    expect(Object.keys(second.pems)).toEqual([second.kid]);
    const node = taken(first.keySet, second.rotations[0]!.signed, NOW);
    expect(() => verifyText("document", signText("document", 1, signerOf(first)), node, NOW)).toThrow();
  });

  test("a node ahead of these keys, or too far behind, is to be enrolled again", () => {
    let keys = newSigningKeys(key());
    for (let step = 0; step < 66; step++)
      keys = rotateSigningKeys(keys, key(), { now: NOW + step, overlap: 0 });
    expect(() => rotationsAfter(keys, 1)).toThrow(/too old/);
    expect(() => rotationsAfter(keys, 99)).toThrow(/restored copy/);
    expect(rotationsAfter(keys, 66)).toHaveLength(1);
    expect(rotationsAfter(keys, 67)).toHaveLength(0);
  });

  test("steps are delivered in order, and one that is refused ends it", async () => {
    let keys: SigningKeys = newSigningKeys(key());
    let node = keys.keySet;
    for (let step = 0; step < 3; step++) keys = rotateSigningKeys(keys, key(), { now: NOW, overlap: 60 });
    const client = new SliverClient(async (text) => {
      const { params } = JSON.parse(text) as { params: [string] };
      try {
        node = taken(node, params[0], NOW);
        return '{"result":1}';
      } catch (error) {
        return JSON.stringify({ fault: { code: 102, message: (error as Error).message } });
      }
    });
    const { signal } = new AbortController();
    expect(await deliverKeys(client, keys, { keySet: 1 }, signal)).toBe(true);
    expect(node).toEqual(keys.keySet);
    expect(await deliverKeys(client, keys, { keySet: 4 }, signal)).toBe(false);
    await expect(deliverKeys(client, keys, { keySet: 2 }, signal)).rejects.toThrow(SliverFaultError);
  });
});

describe("the file of signing keys", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "signing-keys-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test("is made once, for its owner only, and rotated whole", async () => {
    const path = join(folder, "new", "keys.json");
    const made = createSigningKeys(path);
    expect(readSigningKeys(path)).toEqual(made);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(() => createSigningKeys(path)).toThrow(/keys exist already/);
    expect(readSigningKeys(path)).toEqual(made);
    const rotated = rotateSigningKeysFile(path, { now: NOW, overlap: 60 });
    expect(readSigningKeys(path)).toEqual(rotated);
    expect(rotated.kid).not.toBe(made.kid);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(join(folder, "new"))).toEqual(["keys.json"]);
  });

  test("is refused where others may read it, where it is none, and while another changes it; no message tells a secret", async () => {
    const path = join(folder, "keys.json");
    expect(() => readSigningKeys(path)).toThrow(/sliverd keys init/);
    const { pems, kid } = createSigningKeys(path);
    await chmod(path, 0o640);
    expect(() => readSigningKeys(path)).toThrow(/chmod 600/);
    await chmod(path, 0o600);
    await writeFile(`${path}.draft`, "");
    expect(() => rotateSigningKeysFile(path, { now: NOW, overlap: 0 })).toThrow(
      /another process is changing them/,
    );
    await rm(`${path}.draft`);
    const text = await readFile(path, "utf8");
    const secret = pems[kid]!.split("\n")[1]!;
    for (const [spoilt, why] of [
      [text.slice(0, -20), /not JSON/],
      [text.replace(`"kid": "${kid}",\n  "keySet"`, '"kid": "other",\n  "keySet"'), /not among the keys/],
      [encodeSigningKeys({ ...readSigningKeys(path), pems: { [kid]: newPem() } }), /do not match/],
    ] as const) {
      await writeFile(path, spoilt);
      expect(() => readSigningKeys(path)).toThrow(why);
      try {
        readSigningKeys(path);
      } catch (error) {
        expect(String((error as Error).message)).not.toContain(secret);
      }
    }
  });
});

function newPem(): string {
  return key().export({ type: "pkcs8", format: "pem" }).toString();
}
