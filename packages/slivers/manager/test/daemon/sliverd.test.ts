import { readFile, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { type DocumentInput, type SliverSpecInput, signText } from "@nodeyard/sliver-protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patience, patient } from "../../../../../testing/patience.ts";
import { requireRoot } from "../../../../../testing/skipped.ts";
import { parseResponse } from "../../src/api/xmlrpc/parse.ts";
import { writeCall } from "../../src/api/xmlrpc/write.ts";
import { signerOf, spec } from "../api/rig.ts";
import { DaemonRig, TOKEN } from "./rig.ts";

const rig = new DaemonRig();
const signal = () => AbortSignal.timeout(patient(60_000));
const ED = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
let version = 0;

function deliver(...slivers: SliverSpecInput[]) {
  const head: DocumentInput = { v: 1, node: "node-1", epoch: 1, version: ++version, issuedAt: 0, slivers };
  return rig.launcher.deliver(signText("document", head, rig.signer), signal());
}

beforeAll(async () => {
  await rig.prepare();
  await rig.start();
  await deliver(
    spec("ada", { generation: 0, rspec: { cpuShare: 64 } }),
    spec("bob", { generation: 0 }),
    spec("laz", { generation: 0, instantiation: "delegated" }),
    spec("ctl", { generation: 0, instantiation: "nm-controller", keys: [ED] }),
  );
  await until(
    async () =>
      (await rig.launcher.status(signal())).slivers.filter(({ phase }) => phase === "running").length === 2,
  );
  await until(() => stat(rig.socket("bob")).then(() => true));
});
afterAll(() => rig.stop());

async function until(check: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 2_400 * patience(); turn++) {
    if (await check().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`it did not happen\n${rig.errors.join("")}`);
}

describe("sliverd, spoken to by Python", () => {
  test("the 2.0 line, over a sliver's own socket", async () => {
    const answers = await rig.python(rig.socket("ada"), [
      ["Help"],
      ["Help", 1],
      ["Foo"],
      ["GetRSpec", "ada"],
      ["SetLoans", "ada", [["bob", "cpu_share", 1]]],
      ["GetLoans", "ada"],
      ["GetEffectiveRSpec", "ada"],
      ["SetLoans", "ada", [["bob", "cpu_share", true]]],
      ["Stop", "bob"],
      ["GetRecord"],
      ["GetXIDs"],
      ["Create", "ada"],
    ]);
    expect(answers[0]!.result).toContain("**** GetSSHKeys");
    expect(answers.slice(1, 3)).toMatchObject([{ fault: 101 }, { fault: 100 }]);
    expect(answers[3]!.result).toMatchObject({ cpu_share: 2, cpu_pct: 0, disk_max: 10_000_000 });
    expect(answers.slice(4, 7)).toMatchObject([
      { result: 1 },
      { result: [["bob", "cpu_share", 1]] },
      { result: { cpu_share: 1 } },
    ]);
    expect(answers.slice(7)).toMatchObject([
      { fault: 104 },
      { fault: 108, text: "ada: Permission denied." },
      { result: { name: "ada", _rspec: { cpu_share: 1 } } },
      { fault: 108 },
      { fault: 104, text: expect.stringContaining("Only PLC") },
    ]);
  });

  test("the seed's revision, at its path", async () => {
    const answers = await rig.python(
      rig.socket("root"),
      [
        ["GetRSpec", "bob"],
        ["Create", "laz"],
        ["Create", "ada"],
        ["Stop", "nobody"],
        ["Stop", "ctl"],
        ["Ticket", "x"],
      ],
      { path: "/r0" },
    );
    expect(answers).toMatchObject([
      { result: { cpu_share: 32, net_min: 0 } },
      { result: 1 },
      { result: 1 },
      { fault: 102 },
      { fault: 102 },
      { fault: 100 },
    ]);
    expect(Object.keys(answers[0]!.result as object)).toHaveLength(9);
    const status = async () =>
      (await rig.launcher.status(signal())).slivers.find(({ name }) => name === "laz")!;
    await until(async () => (await status()).phase === "running");
  });

  test.skipIf(requireRoot())("who may open which socket is the kernel's answer", async () => {
    const { slivers } = await rig.launcher.status(signal());
    const uid = 60_000 + slivers.find(({ name }) => name === "ada")!.index!;
    expect(await rig.python(rig.socket("ada"), [["GetLoans", "ada"]], { uid })).toMatchObject([
      { result: expect.anything() },
    ]);
    for (const other of ["bob", "root", "control", "ctl"])
      expect(await rig.python(rig.socket(other), [["Help"]], { uid })).toEqual([
        { error: "PermissionError" },
      ]);
  });

  test("loopback TCP: Help for all, everything else with a token", async () => {
    const place = `http://127.0.0.1:${rig.port}`;
    const calls = [["Help"], ["GetXIDs"], ["Stop", "ada"], ["AdminTicket", "x"]];
    for (const token of ["", "wrong"])
      expect(await rig.python(place, calls, { token })).toMatchObject([
        { result: expect.stringContaining("Help") },
        { fault: 108 },
        { fault: 108 },
        { fault: 108 },
      ]);
    expect(await rig.python(place, calls.slice(0, 2), { token: TOKEN })).toMatchObject([
      { result: expect.anything() },
      { result: expect.objectContaining({ ada: expect.any(Number) }) },
    ]);
  });

  test("the forwarder: what comes back is always a response, and its exit code says whether the call arrived", async () => {
    const help = await rig.forward("ctl", writeCall("Help", []));
    expect(help.code).toBe(0);
    expect(parseResponse(help.out)).toMatchObject({ value: expect.stringContaining("Help") });
    const json = await rig.forward("control", '{"method":"Status","params":[]}');
    expect(JSON.parse(json.out)).toMatchObject({ result: { node: "node-1" } });
    const long = await rig.forward("ctl", writeCall("Ticket", ["x".repeat(900_000)]));
    expect(parseResponse(long.out)).toMatchObject({ fault: { faultCode: 104 } });
    for (const [account, input] of [
      ["ctl", ""],
      ["nobody", writeCall("Help", [])],
      ["ctl", "x".repeat(1_200_000)],
    ] as const) {
      const { out, code } = await rig.forward(account, input);
      expect(code).toBe(1);
      expect(parseResponse(out)).toMatchObject({ fault: { faultCode: 1 } });
    }
    expect((await rig.forward("../root", "x")).code).toBe(2);
  });

  test("keys of control accounts have one forced command each", async () => {
    await until(
      async () =>
        (await readFile(join(rig.folder, "keys"), "utf8")) ===
        `restrict,command="/usr/bin/sliver-forward ctl" ${ED}\n`,
    );
  });

  test("a second one on the same state says so and goes", async () => {
    await expect(rig.start()).rejects.toThrow(/exit 1: error another sliverd runs in/);
  });

  test("19: SetLoans is there after a kill -9 right behind its answer", async () => {
    await rig.python(rig.socket("ada"), [
      [
        "SetLoans",
        "ada",
        [
          ["bob", "net_share", 0],
          ["bob", "cpu_share", 1],
        ],
      ],
    ]);
    await rig.end("SIGKILL");
    await rig.start();
    expect(await rig.python(rig.socket("root"), [["GetLoans", "ada"]])).toEqual([
      {
        result: [
          ["bob", "net_share", 0],
          ["bob", "cpu_share", 1],
        ],
      },
    ]);
  });

  test("26: a store that was emptied is safe mode until a full document came", async () => {
    expect(await rig.end("SIGTERM")).toBe(0);
    for (const name of ["state.0.json", "state.1.json"]) await truncate(join(rig.folder, "state", name));
    await rig.start();
    expect(await rig.launcher.status(signal())).toMatchObject({ safeMode: true, slivers: [] });
    expect(await deliver(spec("ada", { generation: 0 }))).toMatchObject({
      safeMode: false,
      appliedVersion: version,
    });
  });

  test("a machine that a stolen key took over: its owner makes it forget that, locally, and slivers stay", async () => {
    const thief = signerOf("k9");
    const keySet = { v: 1, version: 900, keys: [{ kid: "k9", x: thief.x }] };
    await rig.launcher.rotateKeys(signText("key-set", keySet, rig.signer), signal());
    const head = {
      v: 1 as const,
      node: "node-1",
      epoch: 900,
      version: 2 ** 52,
      issuedAt: 0,
      writer: "thief",
    };
    await rig.launcher.deliver(
      signText("document", { ...head, slivers: [spec("ada", { generation: 0 })] }, thief),
      signal(),
    );
    await expect(deliver(spec("ada", { generation: 0 }))).rejects.toThrow(/no key "k1"/);
    await expect(rig.run("--forget-writer")).rejects.toThrow(/another sliverd runs in/);
    await rig.end("SIGTERM");
    expect(await rig.run("--forget-writer", "--dry-run")).toMatch(/^would forget document 900\.\d+ of thief/);
    expect(await rig.run("--forget-writer")).toMatch(/^forgot .*key set 900 \(now 1: k1\); 1 accounts stay/);
    await rig.start();
    const report = await deliver(spec("ada", { generation: 0 }), spec("bob", { generation: 0 }));
    expect(report).toMatchObject({ appliedEpoch: 1, keySet: 1, slivers: [{ name: "ada" }, { name: "bob" }] });
    const audit = await readFile(join(rig.folder, "state", "audit.log"), "utf8");
    expect(audit).toMatch(/"method":"ForgetWriter","verdict":"allowed","message":"document 900/);
  });

  test("the audit log has every decision, and what slivers did pushes nothing else out of it", async () => {
    const read = async (name: string) => {
      const lines = (await readFile(join(rig.folder, "state", name), "utf8")).trim().split("\n");
      return lines.map((line) => JSON.parse(line));
    };
    const entries = await read("audit-slivers.log");
    expect(new Set(entries.map(({ role }) => role))).toEqual(new Set(["sliver", "anonymous"]));
    const roles = (await read("audit.log")).map(({ role }) => role);
    expect(new Set(roles)).toEqual(new Set(["root", "control", "controller"]));
    expect(entries).toContainEqual(
      expect.objectContaining({ account: "ada", method: "Stop", target: "bob", verdict: "denied" }),
    );
    expect(entries).toContainEqual(
      expect.objectContaining({ account: "anonymous", method: "AdminTicket", verdict: "denied" }),
    );
  });

  test("a wrong file, another node's store or a back end that is not there: one line, exit code 1", async () => {
    await rig.end("SIGTERM");
    await rig.configure({ node: "node-2" });
    await expect(rig.start()).rejects.toThrow(
      /exit 1: error the store is of node "node-1", this is "node-2"/,
    );
    await rig.configure({ backEnd: "docker" });
    await expect(rig.start()).rejects.toThrow(
      /exit 1: error there is no back end "docker"; there is account, container, memory/,
    );
    await rig.configure({ machine: { cpu: 0 } });
    await expect(rig.start()).rejects.toThrow(/exit 1: error .*config.json: machine.cpu: /);
    await rig.configure({ tcp: { host: "0.0.0.0", port: rig.port } });
    await expect(rig.start()).rejects.toThrow(/exit 1: error the API listens on loopback only/);
  });
});
