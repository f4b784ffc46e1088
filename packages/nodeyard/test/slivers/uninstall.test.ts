import { Readable } from "node:stream";
import { type Bundle, type Remote, uninstallSliverd } from "@nodeyard/driver-sliver/operator";
import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";

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
  onRun: (line: string) => void = () => {};
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
    this.onRun(line);
    return line.includes("withdraw") ? `${JSON.stringify(enrolled)}\n` : "";
  }

  async target(): Promise<never> {
    throw new Error("nobody asks");
  }
}

const uninstall = (remote: Remote, given: () => Bundle, signal = new AbortController().signal) =>
  uninstallSliverd({ remote, bundle: given, dryRun: false, clock: new VirtualClock(), signal });
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
  expect(host.ran[0]).toContain(`${COPY}/sliver-enrol.mjs withdraw`);
  expect(host.ran[1]).toBe(`rm -rf ${COPY}`);
  const other = { ...bundle, platform: "Linux aarch64" };
  await expect(uninstall(new Host(found), () => other)).rejects.toThrow(/--node-runtime/);
});

test("what was copied goes also when the time for it all is over", async () => {
  const host = new Host({ list: false, runs: false, traces: true });
  const stop = new AbortController();
  host.onRun = (line) => {
    if (!line.includes("withdraw")) return;
    stop.abort(new Error("too late"));
    stop.signal.throwIfAborted();
  };
  await expect(uninstall(host, () => bundle, stop.signal)).rejects.toThrow("too late");
  expect(host.ran.at(-1)).toBe(`rm -rf ${COPY}`);
});
