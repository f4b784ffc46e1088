import { MAX_AMOUNT } from "@nodeyard/sliver-protocol";
import { describe, expect, test } from "vitest";
import { load, whole } from "./load.ts";

const ED = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

describe("the configuration of slivers", () => {
  test("amounts are in the units of people, and what is promised is always said", () => {
    const { config, findings, schema } = load(
      whole({
        "cpu-guarantee": 500,
        memory: 256,
        "net-cap": 1000,
        pids: 100,
        "authorized-keys": [`${ED} ada`],
      }),
    );
    expect({ findings, schema }).toEqual({ findings: [], schema: true });
    expect(config?.pools[0]?.labels.get("small")?.own).toEqual({
      rspec: {
        cpuGuarantee: 500,
        cpuCores: 0,
        memoryGuarantee: 0,
        memoryCap: 262_144,
        pids: 100,
        disk: 2_097_152,
        netGuarantee: 0,
        netCap: 1_000_000,
      },
      image: null,
      initscript: "",
      nesting: false,
      devices: [],
      caches: { folders: [], rules: [] },
      authorizedKeys: [ED],
      lends: false,
    });
  });

  test("what is promised may be all that it may have, and there need be no cap", () => {
    for (const label of [{ memory: 256, "memory-guarantee": 256 }, { "memory-guarantee": 512 }])
      expect(load(whole(label)).findings).toEqual([]);
  });

  test.each(["devices", "caches"])("%s are names, not paths", (key) => {
    const [finding] = load(whole({ [key]: ["ccache", "/srv/ccache"] })).findings;
    expect(JSON.stringify(finding)).toContain(
      'is \\"/srv/ccache\\"; write a name of lower-case letters, digits, _ and -',
    );
  });

  test("idle slivers lend where the label says so, and an unknown value is reported", () => {
    const lends = (label: object) => {
      const { config, findings } = load(whole(label));
      return [config?.pools[0]?.labels.get("small")?.own.lends, ...findings];
    };
    expect(lends({ lend: "idle", "cpu-cap": 1000 })).toEqual([true]);
    expect(lends({ lend: "none", "cpu-cap": 1000 })).toEqual([false]);
    expect(lends({ lend: "idle" })).toEqual([true, expect.stringMatching(/without effect: caps are lent/)]);
    expect(lends({ lend: "all" })).toEqual([false, expect.stringMatching(/is all; write none or idle/)]);
  });

  test("machines over SSH", () => {
    const machine = { name: "far", host: "far.example.org", "identity-file": "/key", "host-keys": [ED] };
    const { config, findings, schema } = load(whole({}, { machines: [machine] }));
    expect({ findings, schema }).toEqual({ findings: [], schema: true });
    const ssh = { host: "far.example.org", port: 22, identityFile: "/key", hostKeys: [ED] };
    expect(config?.own.machines).toEqual([{ name: "far", at: { ssh }, address: "far.example.org" }]);
    const both = { ...machine, address: "203.0.113.7" };
    expect(load(whole({}, { machines: [both] })).config?.own.machines[0]?.address).toBe("203.0.113.7");
  });

  const far = { name: "far", host: "far", "identity-file": "/key", "host-keys": [ED] };
  test.each([
    [{ machines: [] }, "machines: is a list of 0; write at least 1"],
    [{ machines: [{ name: "a b", socket: "/s" }] }, 'machines.0.name: is "a b"'],
    [{ machines: [{ name: "one" }] }, "machines.0: needs exactly one of socket and host"],
    [{ machines: [{ ...far, socket: "/s" }] }, "machines.0: needs exactly one of socket and host"],
    [{ machines: [{ name: "one", socket: "run/s" }] }, 'machines.0.socket: is "run/s"'],
    [{ machines: [{ ...far, "host-keys": undefined }] }, "machines.0.host-keys: is missing"],
    [{ machines: [{ ...far, host: "-oProxyCommand=x" }] }, 'machines.0.host: is "-oProxyCommand=x"'],
    [{ machines: [{ ...far, user: "root;x" }] }, 'machines.0.user: is "root;x"'],
    [{ machines: [{ ...far, "host-keys": ["*"] }] }, 'machines.0.host-keys.0: is "*"'],
    [{ machines: [far, far] }, "machines: names far twice"],
    [{ epoch: 0 }, "epoch: is 0"],
    [{ "signing-keys": "keys.json" }, 'signing-keys: is "keys.json"'],
    [{ "authorized-keys": [`command="x" ${ED}`] }, "authorized-keys: entry 0: "],
  ])("%j is an error at its place", (more, finding) => {
    expect(load(whole({}, more)).findings).toEqual([expect.stringContaining(finding)]);
  });

  test.each([
    [{ memory: -1 }, "memory: is -1"],
    [{ memory: 1.5 }, "memory: is 1.5"],
    [{ memory: MAX_AMOUNT }, `from 0 to ${Math.floor(MAX_AMOUNT / 1024)}`],
    [{ image: "../etc" }, 'image: is "../etc"'],
    [{ memory: 256, "memory-guarantee": 512 }, "memory-guarantee: is 512 with memory 256"],
  ])("label %j is an error at its place", (label, finding) => {
    expect(load(whole(label)).findings).toEqual([expect.stringContaining(finding)]);
  });
});
