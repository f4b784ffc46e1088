import { driverConformance } from "@nodeyard/driver-testkit";
import { createScanner } from "@nodeyard/keyscan";
import { systemClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { requireSshd, startSshd } from "../../../../testing/sshd/index.ts";
import { type StaticHost, staticDriver } from "../src/index.ts";
import { config, context, host, SSH, staticRig, tableScanner } from "./rig.ts";

const signal = new AbortController().signal;
const KEYS = ["ssh-ed25519 AAAAC3Nz", "ssh-rsa AAAAB3Nz"];

driverConformance("static", staticDriver, staticRig, { describe, test, expect });

async function probeOne(entry: StaticHost, scanner = tableScanner(KEYS)) {
  const provider = await staticDriver.open(config([entry]), context(scanner.scan));
  const verdict = await provider.probe(provider.inventory()[0]!, signal);
  return { verdict, scans: scanner.state.scans };
}

describe("inventory", () => {
  test("two users of one host are two hosts; slots and labels are the file's; no slots, no host", async () => {
    const other = { ...SSH, username: "ci" };
    const hosts = [host({ slots: 3 }), host({ connection: other }), host({ name: "idle", slots: 0 })];
    const provider = await staticDriver.open(config(hosts), context(tableScanner(KEYS).scan));
    const items = provider.inventory();
    expect(items.map(({ key, slots, pool }) => [key, slots, pool])).toEqual([
      ["zuul@board.example:22", 3, "lab"],
      ["ci@board.example:22", 1, "lab"],
    ]);
    expect(items[0]!.machine).toMatchObject({
      externalId: "board.example",
      interfaceIp: "board.example",
      hostname: "board.example",
      resources: { instances: 1 },
    });
  });
});

describe("probe", () => {
  test("takes what the host shows where the file names no key, and the address that answered", async () => {
    const { verdict, scans } = await probeOne(host({ slots: 8 }));
    expect(verdict).toMatchObject({
      alive: true,
      machine: { hostKeys: KEYS, publicIpv4: "192.0.2.7", publicIpv6: null, interfaceIp: "board.example" },
    });
    expect(scans).toMatchObject([{ host: "board.example", port: 22, keys: true, timeoutMs: 2_000 }]);
    const six = await probeOne(host(), tableScanner(KEYS, "2001:db8::7"));
    expect(six.verdict).toMatchObject({ machine: { publicIpv4: null, publicIpv6: "2001:db8::7" } });
  });

  test("configured keys must be among those shown; if not, it says which", async () => {
    expect((await probeOne(host({ hostKeys: [KEYS[1]!] }))).verdict.alive).toBe(true);
    const { verdict } = await probeOne(host({ hostKeys: [KEYS[0]!, "ssh-ed25519 AAAAWRONG"] }));
    expect(verdict).toMatchObject({ alive: false });
    expect(!verdict.alive && verdict.why).toMatch(
      /^host key mismatch: board\.example:22 does not show the configured ssh-ed25519 SHA256:\S+; it shows .*ssh-rsa SHA256:/,
    );
  });

  test.each(["ssh", "winrm"])("a %s host without host-key-checking is never contacted", async (type) => {
    const entry = host({ hostKeyChecking: false, hostKeys: KEYS, connection: { ...SSH, type } });
    const { verdict, scans } = await probeOne(entry);
    expect(verdict).toMatchObject({ alive: true, machine: { hostKeys: KEYS } });
    expect(scans).toEqual([]);
  });

  test("other connection types only need an open port", async () => {
    const { verdict, scans } = await probeOne(
      host({ hostKeys: KEYS, connection: { ...SSH, type: "winrm", port: 5986 } }),
    );
    expect(verdict).toMatchObject({ alive: true, machine: { hostKeys: [] } });
    expect(scans).toMatchObject([{ port: 5986, keys: false }]);
  });

  test("probes of one host at a time share a scan; the next probe makes its own", async () => {
    const scanner = tableScanner(KEYS);
    const hosts = [host(), host({ connection: { ...SSH, username: "ci" } })];
    const provider = await staticDriver.open(config(hosts), context(scanner.scan));
    const probes = provider.inventory().flatMap((item) => [item, item]);
    await Promise.all(probes.map((item) => provider.probe(item, signal)));
    expect(scanner.state.scans).toHaveLength(1);
    scanner.state.alive = false;
    expect((await provider.probe(provider.inventory()[0]!, signal)).alive).toBe(false);
  });

  test("a host that left the configuration is not alive", async () => {
    const scanner = tableScanner(KEYS);
    const [before, after] = await Promise.all(
      [host(), host({ name: "new.example" })].map((entry) =>
        staticDriver.open(config([entry]), context(scanner.scan)),
      ),
    );
    const verdict = await after!.probe(before!.inventory()[0]!, signal);
    expect(verdict).toEqual({
      alive: false,
      why: "zuul@board.example:22 is not in the configuration of lab-provider",
    });
  });
});

describe.skipIf(requireSshd())("a real host", () => {
  test("is alive with its key, not with another's, and not when it has gone", async () => {
    const [sshd, stranger] = await Promise.all([
      startSshd({ hostKeyTypes: ["ed25519", "rsa"] }),
      startSshd(),
    ]);
    const scanner = createScanner({ clock: systemClock });
    const probe = async (hostKeys: readonly string[]) => {
      const entry = host({
        name: "127.0.0.1",
        connection: { ...SSH, port: sshd.port },
        hostKeys,
        timeoutMs: 1_000,
      });
      const provider = await staticDriver.open(config([entry]), context(scanner));
      return provider.probe(provider.inventory()[0]!, signal);
    };
    try {
      const alive = await probe([sshd.hostKeys[0]!]);
      expect(alive).toMatchObject({
        alive: true,
        machine: { hostKeys: sshd.hostKeys, publicIpv4: "127.0.0.1" },
      });
      expect(await probe(stranger.hostKeys)).toMatchObject({ alive: false });
    } finally {
      await Promise.all([sshd.stop(), stranger.stop()]);
    }
    expect(await probe([])).toMatchObject({ alive: false, why: expect.stringContaining("ECONNREFUSED") });
  });
});
