import { execFileSync } from "node:child_process";
import { amountText, layersOf, resourceText, size, wholeOf } from "@nodeyard/client/amounts";
import { bars, type Step, span, took } from "@nodeyard/client/steps";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { countsOf, knownHosts, partsOf, quoted, sshLine } from "../browser/data/format.ts";
import { windowOf } from "../browser/data/window.ts";

test("times, sizes and labels are short", () => {
  expect([0.9, 59, 60, 3_599, 3_600, 12_000, 86_400, 190_000].map(span)).toEqual([
    "0 s",
    "59 s",
    "1 min",
    "59 min",
    "1 h",
    "3 h 20 min",
    "1 d",
    "2 d 4 h",
  ]);
  expect([0.028, 1.25, 75].map(took)).toEqual(["28 ms", "1.3 s", "1 min"]);
  expect([5, 1_500, 20 * 1_024 ** 3].map(size)).toEqual(["5 B", "1.5 KiB", "20 GiB"]);
  expect([...countsOf(["a", "b", "a"])]).toEqual([
    ["a", 2],
    ["b", 1],
  ]);
});

test("bars of slivers end at the same amount, and their parts are what each has of it", () => {
  const of = (caps: number, guarantees: number, borrowed: number, uses: number) => ({
    caps: caps > 0 ? { ram: caps } : {},
    ...{ guarantees: { ram: guarantees }, borrowed: { ram: borrowed }, uses: { ram: uses } },
  });
  const [borrower, lender, uncapped] = [of(300, 100, 50, 200), of(100, 50, -150, 0), of(0, 0, 0, 400)];
  const whole = wholeOf([borrower, lender, uncapped], "ram");
  expect(whole).toBe(400);
  expect(layersOf(borrower, "ram", whole)).toEqual([
    { kind: "cap", from: 0, to: 0.75 },
    { kind: "guaranteed", from: 0, to: 0.25 },
    { kind: "borrowed", from: 0.625, to: 0.75 },
    { kind: "used", from: 0, to: 0.5 },
  ]);
  expect(layersOf(lender, "ram", whole)).toEqual([
    { kind: "cap", from: 0, to: 0.25 },
    { kind: "guaranteed", from: 0, to: 0.125 },
    { kind: "lent", from: 0.25, to: 0.625 },
  ]);
  expect(layersOf(uncapped, "ram", whole)).toEqual([{ kind: "used", from: 0, to: 1 }]);
  // Of a machine, slivers may use more than it promises in all.
  expect(layersOf(uncapped, "ram", 200)).toEqual([{ kind: "used", from: 0, to: 1 }]);
  expect(layersOf(of(0, 0, 0, 0), "ram", wholeOf([], "ram"))).toEqual([]);
});

test("amounts have their units", () => {
  const amounts = {
    millicores: 1_500,
    ram: 2_048,
    "disk-mib": 10,
    "net-kbit": 2_500,
    instances: 3,
    cores: 2,
  };
  expect(
    Object.entries(amounts).map(([name, amount]) => `${resourceText(name)} ${amountText(name, amount)}`),
  ).toEqual(["cpu 1.5 cores", "memory 2.0 GiB", "disk 10 MiB", "net 2.5 Mbit/s", "instances 3", "cores 2"]);
  const given = {
    cpuCap: 900,
    memoryCap: 512,
    netCap: 999,
    net2Guarantee: 1e9,
    netDay: 3,
    ioRead: 1_024,
    pids: 9,
  };
  expect(
    Object.entries(given).map(([name, amount]) => `${resourceText(name)} ${amountText(name, amount)}`),
  ).toEqual([
    "cpu cap 0.9 cores",
    "memory cap 512 KiB",
    "net cap 999 bit/s",
    "net2 guarantee 1 Gbit/s",
    "net day 3.0 KiB per day",
    "io read 1.0 KiB/s",
    "pids 9",
  ]);
});

test("ids and times are found in texts, and numbers are not taken for ids", () => {
  const text =
    "Lease caeb0f3ff0e9 of request 200-0000000042 has node 0000000007. It ends at 2026-11-29T05:11:57.236Z, or now";
  expect(partsOf(text)).toEqual([
    { text: "Lease " },
    { view: "leases", id: "caeb0f3ff0e9" },
    { text: " of request " },
    { view: "requests", id: "200-0000000042" },
    { text: " has node " },
    { view: "nodes", id: "0000000007" },
    { text: ". It ends " },
    { at: "2026-11-29T05:11:57.236Z" },
    { text: ", or now" },
  ]);
  expect(partsOf("Nodeyard:lease:69a92239085a")[1]).toEqual({ view: "leases", id: "69a92239085a" });
  for (const none of [
    "debian-trixie-0795926035",
    "1795926035",
    "0123456789.5",
    "caeb0f3ff0e9",
    "a-200-0000000042",
  ])
    expect(partsOf(none)).toEqual([{ text: none }]);
});

describe("the line to log in", () => {
  test("names user and port where they are needed", () => {
    expect(sshLine("192.0.2.1", 22, "zuul", "ssh")).toBe("ssh -- zuul@192.0.2.1");
    expect(sshLine("2001:db8::1", 2222, null, null)).toBe("ssh -p 2222 -- 2001:db8::1");
    expect(sshLine("192.0.2.1", 5986, "zuul", "winrm")).toBeUndefined();
    expect(sshLine(null, 22, "zuul", "ssh")).toBeUndefined();
    expect(knownHosts("192.0.2.1", 2222, ["ssh-ed25519 AAAA"])).toBe("[192.0.2.1]:2222 ssh-ed25519 AAAA");
  });

  test("is one word for a shell, whatever a record holds", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.string().filter((text) => !text.includes("\0")),
          { minLength: 1, maxLength: 5 },
        ),
        (words) => {
          const script = `printf '%s\\0' ${words.map(quoted).join(" ")}`;
          expect(execFileSync("sh", ["-c", script], { encoding: "utf8" })).toBe(
            words.map((word) => `${word}\0`).join(""),
          );
        },
      ),
      { numRuns: 20 },
    );
  });
});

test("the time between launch and deletion takes no room on the time line", () => {
  const step = (of: string, began: number, seconds: number | null): Step => ({
    ...{ node: "1", of, attempt: 1, step: of, error: null },
    began: new Date(began * 1_000).toISOString(),
    seconds,
  });
  const steps = [step("launch", 1_000, 10), step("life", 1_010, 36_000), step("delete", 37_010, null)];
  const [launch, life, remove] = bars(steps, 37_040_000);
  expect(launch!.place).toEqual({ from: 0, to: 0.25 });
  expect(life!.place).toBeUndefined();
  expect(remove).toMatchObject({ place: { from: 0.25, to: 1 }, seconds: 30 });
});

describe("rows in sight", () => {
  test("are those between the edges, and some more", () => {
    expect(windowOf(3_400, 340, 34, 5_000)).toEqual({ first: 92, last: 118 });
    expect(windowOf(0, 340, 34, 3)).toEqual({ first: 0, last: 3 });
  });

  test("are the last ones after a filter left fewer than are scrolled away", () => {
    expect(windowOf(100_000, 340, 34, 20)).toEqual({ first: 10, last: 20 });
    expect(windowOf(100_000, 340, 34, 0)).toEqual({ first: 0, last: 0 });
  });
});
