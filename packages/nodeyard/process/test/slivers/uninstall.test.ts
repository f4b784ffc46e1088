import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type Bundle, localRemote, type Remote, uninstallSliverd } from "@nodeyard/sliver-installer";
import { describe, expect, test } from "vitest";

const CURRENT = "/usr/lib/nodeyard-sliverd/current";
const COPY = "/var/tmp/nodeyard-sliverd.abcdEFGH";
const DIGEST = "0".repeat(64);
const enrolled = { node: "n1", changes: ["remove it"], missingPackages: [], notes: [] };
const bundle: Bundle = {
  digest: DIGEST,
  runtimeSize: 1,
  platform: "Linux x86_64",
  open: () => Readable.from([]),
};

/** A machine's shell: what it has of an enrolment, and what was run there. */
class Host implements Remote {
  readonly name = "h";
  readonly ran: string[] = [];
  readonly #found: { readonly list: boolean; readonly runs: boolean; readonly traces: boolean };

  constructor(found: { readonly list: boolean; readonly runs: boolean; readonly traces: boolean }) {
    this.#found = found;
  }

  async run(line: string, { signal }: { readonly signal: AbortSignal }): Promise<string> {
    const { list, runs, traces } = this.#found;
    signal.throwIfAborted();
    if (line.startsWith("uname"))
      return `Linux x86_64\n0\n${list ? `${DIGEST}  bundle.json` : "-"}\n1\n${traces ? "some" : "none"}\n`;
    if (line.includes("--version")) return runs ? "sliver-enrol 0.1.0\n" : "";
    if (line.includes("mktemp")) return `${COPY}\n`;
    this.ran.push(line);
    return line.includes("withdraw") ? `${JSON.stringify(enrolled)}\n` : "";
  }

  async target(): Promise<never> {
    throw new Error("nobody asks");
  }
}

const uninstall = (remote: Remote, given: () => Bundle, signal = new AbortController().signal) =>
  uninstallSliverd({ remote, bundle: given, dryRun: false, signal });
const none = () => {
  throw new Error("nothing is copied");
};

test("the machine's own programs take the enrolment back; where nothing of one is, nothing is done", async () => {
  const whole = new Host({ list: true, runs: true, traces: true });
  expect(await uninstall(whole, none)).toEqual(enrolled);
  expect(whole.ran).toHaveLength(1);
  expect(whole.ran[0]).toContain(`${CURRENT}/sliver-enrol.mjs withdraw`);
  const clean = new Host({ list: false, runs: false, traces: false });
  expect(await uninstall(clean, none)).toMatchObject({ changes: [], notes: ["it is not a sliver host"] });
  expect(clean.ran).toEqual([]);
});

test.each([
  ["the programs never came there, or are gone already", { list: false, runs: false, traces: true }],
  ["the programs are damaged", { list: true, runs: false, traces: true }],
])("half an enrolment is taken back by programs that are copied for it: %s", async (_, found) => {
  const host = new Host(found);
  expect(await uninstall(host, () => bundle)).toEqual(enrolled);
  expect(host.ran).toEqual([
    expect.stringMatching(`${COPY}/sliver-enrol.mjs withdraw; status=.*rm -rf ${COPY}; exit`),
  ]);
  const other = { ...bundle, platform: "Linux aarch64" };
  await expect(uninstall(new Host(found), () => other)).rejects.toThrow(/--node-runtime/);
});

describe("a real shell removes what was copied", () => {
  const platform = execFileSync("uname", ["-sm"], { encoding: "utf8" }).trim();
  const copies = () => readdirSync("/var/tmp").filter((name) => name.startsWith("nodeyard-sliverd."));
  /** This machine, as one that has traces of an enrolment and runs nothing of it. */
  const remote: Remote = {
    name: "h",
    run: async (line, options) => {
      if (line.startsWith("uname")) return `${platform}\n0\n-\n0\nsome\n`;
      return line.includes("--version") ? "" : localRemote.run(line, options);
    },
  };
  /** Programs whose runtime is this script. */
  const programs = (script: string): Buffer => {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-bundle-"));
    writeFileSync(join(folder, "node"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const archive = execFileSync("tar", ["-cz", "-C", folder, "node"]);
    rmSync(folder, { recursive: true });
    return archive;
  };
  const withdraw = (archive: Buffer, signal?: AbortSignal) =>
    uninstall(remote, () => ({ ...bundle, platform, open: () => Readable.from([archive]) }), signal);

  test.each([
    ["when they have done their work", `echo '${JSON.stringify(enrolled)}'`, undefined],
    ["when they have failed, and that is reported", "echo not today >&2; exit 3", "not today"],
  ])("%s", async (_, script, error) => {
    const before = copies();
    const done = withdraw(programs(script));
    await (error === undefined
      ? expect(done).resolves.toEqual(enrolled)
      : expect(done).rejects.toThrow(error));
    expect(copies()).toEqual(before);
  });

  test("when the copy came in part", async () => {
    const before = copies();
    await expect(withdraw(programs("true").subarray(0, 40))).rejects.toThrow(/tar|gzip/);
    expect(copies()).toEqual(before);
  });

  test("when they end after the time for it all is over, and not before", async () => {
    const before = copies();
    const stop = new AbortController();
    const done = withdraw(
      programs("cd $(dirname $0); touch began; while [ ! -e on ]; do sleep 0.1; done"),
      stop.signal,
    );
    const copy = () => copies().find((name) => !before.includes(name));
    const there = () => expect.poll(copy);
    await there().toBeDefined();
    await expect.poll(() => existsSync(join("/var/tmp", copy()!, "began"))).toBe(true);
    stop.abort(new Error("too late"));
    await expect(done).rejects.toThrow("too late");
    const folder = join("/var/tmp", copy()!);
    expect(existsSync(join(folder, "node"))).toBe(true);
    writeFileSync(join(folder, "on"), "");
    await there().toBeUndefined();
  });
});
