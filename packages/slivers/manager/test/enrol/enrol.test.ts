import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newSigningKeys, rotateSigningKeys, type SigningKeys } from "@nodeyard/sliver-protocol";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { parseConfig } from "../../src/daemon/config.ts";
import { ownId } from "../../src/daemon/edge/own-id.ts";
import type { Part } from "../../src/enrol/parts.ts";
import { LAYOUT, partsOf, sliverdJson, sshdConfig, systemdUnit } from "../../src/enrol/parts.ts";
import { type Found, planEnrolment } from "../../src/enrol/plan.ts";
import { checkSameLauncher, parseSettings } from "../../src/enrol/settings.ts";

const NOW = 1_700_000_000;
const key = () => generateKeyPairSync("ed25519").privateKey;
const blob = Buffer.concat([
  Buffer.from("0000000b7373682d6564323535313900000020", "hex"),
  Buffer.alloc(32, 7),
]);
const CONTROL = `ssh-ed25519 ${blob.toString("base64")}`;
const settingsOf = (keys: SigningKeys, more: object = {}) =>
  parseSettings(
    JSON.stringify({ v: 1, keySet: keys.keySet, controlKeys: [`${CONTROL} a comment`], ...more }),
  );
const offer = ({ keySet, rotations }: SigningKeys) => ({
  keySet,
  rotations: rotations.map(({ signed }) => signed),
});

const parts = partsOf({ bundle: "1-a", from: "/var/tmp/x", config: "{}", systemd: true, record: "{}" });
const asked = { installPackages: false, image: false };

/** A machine that has some of the parts as they should be, some otherwise, and lacks the rest. */
function machineOf(
  state: readonly ("right" | "wrong" | "absent")[],
  running: boolean,
  reported: boolean,
  due = false,
): Found {
  const files = new Map<string, { text: string; mode: number }>();
  const links = new Map<string, string>();
  const folders = new Map<string, number>();
  const users = new Set<string>();
  for (const [index, part] of parts.entries()) {
    const how = state[index % state.length]!;
    if (how === "absent") continue;
    have({ files, links, folders, users }, part, how === "wrong");
  }
  return {
    files,
    links,
    folders,
    users,
    missingPackages: [],
    running,
    due,
    loaded: reported ? sshdConfig() : undefined,
  };
}

interface Having {
  readonly files: Map<string, { text: string; mode: number }>;
  readonly links: Map<string, string>;
  readonly folders: Map<string, number>;
  readonly users: Set<string>;
}

function have({ files, links, folders, users }: Having, part: Part, wrong = false): void {
  if (part.kind === "user") users.add(part.name);
  else if (part.kind === "folder") folders.set(part.path, wrong ? 0o777 : part.mode);
  else if (part.kind === "programs") folders.set(part.path, 0o755);
  else if (part.kind === "file") files.set(part.path, { text: wrong ? "else" : part.text, mode: part.mode });
  else if (part.kind === "link") links.set(part.path, wrong ? "/else" : part.to);
}

describe("what is to be done to a machine", () => {
  const states = fc.array(fc.constantFrom("right" as const, "wrong" as const, "absent" as const), {
    minLength: 1,
    maxLength: 12,
  });

  test("done once, there is nothing more to do, whatever was there before", () => {
    fc.assert(
      fc.property(states, fc.boolean(), fc.boolean(), fc.boolean(), (state, running, reported, due) => {
        const found = machineOf(state, running, reported, due);
        const plan = planEnrolment(parts, found, asked);
        for (const { part } of plan.changes) have(found as unknown as Having, part);
        const after = {
          ...found,
          running: true,
          due: false,
          loaded: plan.sshd ? sshdConfig() : found.loaded,
        };
        expect(planEnrolment(parts, after, asked)).toEqual({
          changes: [],
          missing: [],
          sshd: false,
          service: "none",
        });
      }),
    );
  });

  test("a daemon that runs is started again for what it reads at its start, and for nothing else", () => {
    const all = () => machineOf(["right"], true, true);
    expect(planEnrolment(parts, all(), asked).service).toBe("none");
    for (const [path, service] of [
      [LAYOUT.config, "restart"],
      [LAYOUT.unit, "restart"],
      [LAYOUT.sshd, "none"],
      [LAYOUT.record, "none"],
    ] as const) {
      const found = all();
      (found as unknown as Having).files.delete(path);
      expect(planEnrolment(parts, found, asked).service, path).toBe(service);
    }
  });

  test("what was cut off before the daemon was started again is made up, though every file is as it should be", () => {
    const right = (running: boolean) => machineOf(["right"], running, true, true);
    expect(planEnrolment(parts, right(true), asked)).toMatchObject({ changes: [], service: "restart" });
    expect(planEnrolment(parts, right(false), asked).service).toBe("start");
    expect(planEnrolment(parts, right(true), { ...asked, image: true }).service).toBe("none");
  });

  test("missing packages are named, and installed only when that was asked for; an image starts nothing", () => {
    const found = { ...machineOf(["absent"], false, false), missingPackages: ["lxc"] };
    expect(planEnrolment(parts, found, asked)).toMatchObject({
      missing: ["lxc"],
      service: "start",
      sshd: true,
    });
    const plan = planEnrolment(parts, found, { installPackages: true, image: true });
    expect(plan).toMatchObject({ missing: [], service: "none", sshd: false });
    expect(plan.changes[0]!.part).toEqual({ kind: "packages", names: ["lxc"] });
  });
});

describe("the keys that a machine trusts", () => {
  test("the same launcher's, however often they were rotated since, and no other's", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 5 }), fc.nat(5), (overlaps, seen) => {
        let keys = newSigningKeys(key());
        const sets = [keys.keySet];
        for (const overlap of overlaps) {
          keys = rotateSigningKeys(keys, key(), { now: NOW, overlap: overlap ? 600 : 0 });
          sets.push(keys.keySet);
        }
        const present = sets[Math.min(seen, sets.length - 1)]!;
        checkSameLauncher(present, offer(keys), NOW);
        checkSameLauncher(undefined, offer(keys), NOW);
        const other = newSigningKeys(key());
        const rotated = rotateSigningKeys(other, key(), { now: NOW, overlap: 600 });
        for (const theirs of [other, rotated])
          expect(() => checkSameLauncher(present, offer(theirs), NOW)).toThrow(/another launcher/);
      }),
      { numRuns: 30 },
    );
  });
});

describe("what is written there", () => {
  test("the daemon takes its file, with the parts that were replaced", () => {
    const keys = newSigningKeys(key());
    const settings = settingsOf(keys, { sliverd: { isolation: { network: "10.9" } } });
    const text = sliverdJson(settings, "n1", keys.keySet, 997);
    expect(parseConfig(text, "x")).toMatchObject({
      node: "n1",
      keySet: keys.keySet,
      control: { uid: 997, keys: [CONTROL], keysFile: LAYOUT.keysFile },
      isolation: { network: "10.9" },
    });
    for (const node of ["", "a b", "a\nb", "../x"])
      expect(() => sliverdJson(settings, node, keys.keySet, 997), node).toThrow(/not a node id/);
  });

  test("sshd's part ends where it began: what others may do is not touched", () => {
    expect(
      sshdConfig()
        .trim()
        .split("\n")
        .filter((line) => line.startsWith("Match")),
    ).toEqual(["Match User nodeyard-control", "Match all"]);
    expect(sshdConfig().trim().endsWith("Match all")).toBe(true);
    expect(systemdUnit()).toMatch(/^KillMode=process$/m);
  });

  test("settings that make no sense are refused, with the place", () => {
    const keys = newSigningKeys(key());
    for (const [more, why] of [
      [{ controlKeys: ['command="id" ssh-ed25519 x'] }, /not a public key/],
      [{ controlKeys: [] }, /controlKeys/],
      [{ node: "a b" }, /node/],
      [{ surplus: 1 }, /surplus/i],
      [{ backEnd: "memory" }, /backEnd/],
    ] as const)
      expect(() => settingsOf(keys, more), JSON.stringify(more)).toThrow(why);
    expect(() => parseSettings("{")).toThrow(/not valid JSON/);
  });
});

describe("a machine's own id", () => {
  const folder = mkdtempSync(join(tmpdir(), "own-id-"));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("is made once, and is another one on another machine", () => {
    const first = ownId(join(folder, "a"));
    expect(ownId(join(folder, "a"))).toBe(first);
    expect(ownId(join(folder, "b"))).not.toBe(first);
    expect(statSync(join(folder, "a")).mode & 0o777).toBe(0o700);
    writeFileSync(join(folder, "a", "node-id"), "no id\n");
    expect(() => ownId(join(folder, "a"))).toThrow(/restore it/);
    expect(readFileSync(join(folder, "a", "node-id"), "utf8")).toBe("no id\n");
  });
});
