import { sshKey } from "@nodeyard/sliver-protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readGetSlivers } from "../../src/core/get-slivers.ts";
import { PROFILES } from "../../src/core/profiles.ts";

const sliver = (more: object = {}) => ({ name: "site_exp", instantiation: "plc-instantiated", ...more });
const reply = (...slivers: unknown[]) => ({ timestamp: 5, node_id: 7, slivers });
const read = (value: unknown, profile: "r0" | "v2" = "r0") => readGetSlivers(value, "7", PROFILES[profile]);
const attributes = (table: Record<string, unknown>) =>
  Object.entries(table).map(([tagname, value]) => ({ tagname, value }));

// Two keys made for this test alone.
const ED = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

describe("documents of PLC", () => {
  test("no tags: the defaults of the profile", () => {
    expect(read(reply(sliver())).records[0]!.rspec).toEqual(PROFILES.r0.policy.defaults);
    expect(read(reply(sliver()), "v2").records[0]!.rspec).toMatchObject({
      cpuShare: 32,
      disk: 10_000_000,
      netGuarantee: 0,
    });
  });

  test("a tag that is a number counts, one that is none or null is as if missing; the last of two wins", () => {
    const share = (value: unknown) =>
      read(reply(sliver({ attributes: attributes({ cpu_share: value }) }))).records[0]!.rspec.cpuShare;
    expect([share("64"), share(48), share("abc"), share(null), share("-3")]).toEqual([64, 48, 32, 32, 0]);
    const twice = [
      { name: "cpu_share", value: "1" },
      { tagname: "cpu_share", value: "2" },
    ];
    expect(read(reply(sliver({ attributes: twice }))).records[0]!.rspec.cpuShare).toBe(2);
  });

  test("the units of the 2.0 line", () => {
    const given = attributes({
      cpu_pct: "25",
      cpu_share: "3",
      net_min_rate: "10",
      cpu_cores: "2b",
      delegations: "other",
    });
    const { rspec, delegations } = read(reply(sliver({ attributes: given })), "v2").records[0]!;
    expect(rspec).toMatchObject({
      cpuGuarantee: 250,
      cpuShare: 96,
      netGuarantee: 10_000,
      cpuCores: 2,
      cpuCoresBestEffort: 1,
    });
    expect(delegations).toEqual([{ caller: "other" }]);
  });

  test("vref names an image, as `default` does not; a slice `..._default` turns the shaping of the network off for all", () => {
    const vref = (value: string) =>
      read(reply(sliver({ attributes: attributes({ vref: value }) }))).records[0]?.image;
    expect([vref("planetlab-f8-i386"), vref("default"), vref("../etc")]).toEqual([
      "planetlab-f8-i386",
      undefined,
      undefined,
    ]);
    const slow = sliver({ attributes: attributes({ net_max_rate: "100" }) });
    const rest = { name: "pl_default", instantiation: "not-instantiated" };
    const all = (rate: string) =>
      read(reply(slow, { ...rest, attributes: attributes({ net_max_rate: rate }) }), "v2").records[0]!.rspec;
    expect(all("100")).toMatchObject({ netCap: 100_000, netDay: 10_546_875 });
    expect(all("-1").netCap).toBe(1e12);
    expect(all("-1")).toMatchObject({ netDay: 0, net2Day: 0 });
  });

  test("a name may have 32 characters", () => {
    expect(read(reply(sliver({ name: "a".repeat(32) }))).records).toHaveLength(1);
    expect(read(reply(sliver({ name: "a".repeat(33) }))).malformed).toHaveLength(1);
  });

  test("25: one sliver that is malformed is said, and the others are there", () => {
    const bad = [
      null,
      {},
      { name: "Bad;name" },
      { name: "root", instantiation: "delegated" },
      { name: "nowhere" },
    ];
    const { records, malformed } = read(reply(...bad, sliver()));
    expect(records.map(({ name }) => name)).toEqual(["site_exp"]);
    expect(malformed.map(({ name }) => name)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      "nowhere",
    ]);
  });

  test("16: nothing that is ours alone can be set from outside", () => {
    const evil = sliver({
      _loans: [["x", "cpu_share", 1]],
      _rspec: {},
      local: { incarnation: 1 },
      rspec: { cpuShare: 9 },
    });
    const [record] = read(reply(evil)).records;
    expect(record).not.toHaveProperty("local");
    expect(record).not.toHaveProperty("_loans");
    expect(record).not.toHaveProperty("loans");
    expect(record!.rspec.cpuShare).toBe(32);
  });

  test("controllers by instantiation and by type; initscripts by name, by code and, in the seed, by text", () => {
    const kinds = read(
      reply(
        sliver({ name: "c", instantiation: "NM-Controller" }),
        sliver({ name: "d", attributes: attributes({ type: "delegate" }) }),
      ),
    ).records.map(({ kind }) => kind);
    expect(kinds).toEqual(["controller", "controller"]);
    const script = (table: Record<string, unknown>) =>
      read({
        ...reply(sliver({ attributes: attributes(table) })),
        initscripts: [{ name: "setup", script: "#!/bin/a" }],
      }).records[0]!.initscript;
    expect(script({ initscript: "setup" })).toBe("#!/bin/a");
    expect(script({ initscript: "setup", initscript_code: "#!/bin/b" })).toBe("#!/bin/b");
    expect(script({ initscript: "#!/bin/c" })).toBe("#!/bin/c");
    expect(script({ initscript: "unknown" })).toBe("");
  });

  test("a reply for another node, or none at all, is refused as a whole", () => {
    expect(() => read({ ...reply(), node_id: 8 })).toThrow(/node 8/);
    for (const value of [null, [], "x", {}, { timestamp: "5", slivers: [] }, { timestamp: 5 }])
      expect(() => read(value)).toThrow();
    expect(read([{ ...reply(), node_id: 8 }, reply(sliver())]).records).toHaveLength(1);
  });

  test("keys are written anew; one that is none is left out", () => {
    const keys = [
      { key_type: "ssh", key: `${ED} a comment` },
      { key: `no-pty ${ED}` },
      { key: 5 },
      `${ED}\nssh-rsa x`,
    ];
    expect(read(reply(sliver({ keys }))).records[0]!.keys).toEqual([ED]);
  });

  test("whatever comes is read or refused, and what is read obeys the grammar", () =>
    fc.assert(
      fc.property(fc.anything(), fc.string({ unit: "binary" }), (value, text) => {
        const hostile = sliver({
          name: text,
          keys: [{ key: `${ED} ${text}` }, { key: text }],
          attributes: value,
        });
        for (const { name, keys } of read(reply(hostile, value, sliver({ keys: [text] }))).records) {
          expect(name).toMatch(/^[a-z][a-z0-9_]{0,31}$/);
          for (const key of keys) expect(key).toBe(sshKey(key));
        }
      }),
    ));
});
