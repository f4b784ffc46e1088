import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newNode } from "@nodeyard/model";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { checkNode } from "../src/edge/check-node.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-check-"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const never = new AbortController().signal;
const node = newNode(
  {
    ...{ id: "0000000042", provider: "cloud", pool: "main", type: ["small"], username: "ci" },
    ...{ externalId: "server-1", interfaceIp: "192.0.2.7", connectionType: "ssh", connectionPort: 2022 },
    hostKeys: ["ssh-ed25519 AAAA", "ssh-rsa BBBB"],
  },
  1,
);

function script(text: string): string {
  const file = join(folder, "check");
  writeFileSync(file, `#!/bin/sh\n${text}\n`);
  chmodSync(file, 0o755);
  return file;
}

test("a check learns of the node from its environment and a file of host keys, which goes with it", async () => {
  const program = script(
    `env | grep ^NODEYARD_ > ${folder}/env; cat "$NODEYARD_KNOWN_HOSTS" > ${folder}/keys; test "$1" = -v`,
  );
  expect(await checkNode({ command: [program, "-v"], node }, never)).toBeUndefined();
  const env = Object.fromEntries(
    readFileSync(join(folder, "env"), "utf8")
      .trim()
      .split("\n")
      .map((line) => line.split("=", 2)),
  ) as Record<string, string>;
  expect(env).toMatchObject({
    ...{ NODEYARD_NODE: "0000000042", NODEYARD_PROVIDER: "cloud", NODEYARD_POOL: "main" },
    ...{ NODEYARD_LABEL: "small", NODEYARD_EXTERNAL_ID: "server-1", NODEYARD_ADDRESS: "192.0.2.7" },
    ...{ NODEYARD_PORT: "2022", NODEYARD_USER: "ci", NODEYARD_CONNECTION: "ssh" },
  });
  expect(readFileSync(join(folder, "keys"), "utf8")).toBe(
    "[192.0.2.7]:2022 ssh-ed25519 AAAA\n[192.0.2.7]:2022 ssh-rsa BBBB\n",
  );
  expect(existsSync(env.NODEYARD_KNOWN_HOSTS!)).toBe(false);
});

test("another status, a signal, and a program that is not there do not pass, each with its reason", async () => {
  const failing = script("echo first; echo the disk is full >&2; exit 3");
  expect(await checkNode({ command: [failing], node }, never)).toMatch(/status 3: the disk is full$/);
  expect(await checkNode({ command: [script("kill -9 $$")], node }, never)).toContain("status -9");
  expect(await checkNode({ command: [join(folder, "nothing")], node }, never)).toContain("status 127");
});

test("the check of the how-to asks the node by ssh, whose status is its own", async () => {
  const page = readFileSync(new URL("../../../../docs/how-to/use-nodes-again.md", import.meta.url), "utf8");
  const program = script(/```sh[^\n]*\n#!\/bin\/sh\n(.*?)```/s.exec(page)![1]!);
  const ssh = join(folder, "ssh");
  writeFileSync(ssh, `#!/bin/sh\nprintf '%s\\n' "$@" > ${folder}/words\nexit 1\n`);
  chmodSync(ssh, 0o755);
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
  expect(await checkNode({ command: [program], node }, never)).toContain("status 1");
  const words = readFileSync(join(folder, "words"), "utf8");
  expect(words).toContain("\n2022\nci@192.0.2.7\n");
  expect(words).toMatch(/\nUserKnownHostsFile=\/.*known_hosts\n/);
});

test("what a check started ends with it, also when it has passed", async () => {
  const program = script(`sleep 600 & echo $! > ${folder}/pid`);
  expect(await checkNode({ command: [program], node }, never)).toBeUndefined();
  const pid = readFileSync(join(folder, "pid"), "utf8").trim();
  const isThere = () =>
    readdirSync("/proc").includes(pid) && !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z");
  while (isThere()) await new Promise((done) => setImmediate(done));
});

test("a check that is stopped is killed, and does not pass", async () => {
  const stop = new AbortController();
  const running = checkNode({ command: [script(`touch ${folder}/on; sleep 600`)], node }, stop.signal);
  while (!existsSync(join(folder, "on"))) await new Promise((done) => setImmediate(done));
  stop.abort();
  expect(await running).toContain("status -9");
});
