import type { AppliedWrite } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { config, Lab } from "../metastatic/lab.ts";
import { fakeProvider, launcherConfig, staticProvider, World } from "./world.ts";

/** The keys of a Node as Zuul and Python launchers know them (docs/contract/zuul.md, "Reading"). */
const NODE_KEYS = new Set(
  `state state_time created_time comment hold_job hold_expiration cloud provider provider_name pool pool_name launcher az region
  type external_id hostname public_ipv4 private_ipv4 public_ipv6 interface_ip connection_port connection_type shell_type
  username image_id host_keys allocated_to build_id python_path attributes user_data resources slot tenant_name requestor
  driver_data host_id private_ipv6 ssh_port`.split(/\s+/),
);
const PLACES = [
  /^\/nodeyard(\/|$)/,
  /^\/nodepool$/,
  /^\/nodepool\/nodes$/,
  /^\/nodepool\/nodes\/(\d{10})?(\/lock(\/[^/]+)?)?$/,
  /^\/nodepool\/requests$/,
  /^\/nodepool\/requests\/\d{3}-(\d{10})?$/,
  /^\/nodepool\/requests-lock(\/\d{3}-\d{10}(\/[^/]+)?)?$/,
  /^\/nodepool\/components(\/(launcher|pool|builder)(\/[^/]+)?)?$/,
];

/** What a launcher wrote where it must not, or into a Node that nobody else knows. */
function strange(log: readonly AppliedWrite[]): string[] {
  const found = new Set<string>();
  for (const { client, ops } of log) {
    if (client === "other") continue;
    for (const op of ops) {
      if (op.op === "check" || op.op === "delete") continue;
      if (!PLACES.some((place) => place.test(op.path))) found.add(op.path);
      if (!/^\/nodepool\/nodes\/(\d{10})?$/.test(op.path) || op.data === undefined) continue;
      const record = JSON.parse(Buffer.from(op.data).toString()) as object;
      for (const key of Object.keys(record)) if (!NODE_KEYS.has(key)) found.add(`${op.path}: ${key}`);
    }
  }
  return [...found];
}

test("slots and their claims: a Node gets no key of ours, and what is ours alone stands below /nodeyard", async () => {
  const lab = new Lab();
  await lab.start("a", config());
  const first = await lab.get();
  await lab.get();
  const claims = lab.children(`/nodeyard/slots/${lab.place(first).backing}`);
  expect(claims).toHaveLength(2);
  expect(strange(lab.cluster.log)).toEqual([]);
});

test("breakers, ledgers, leases' and hosts' records: the same", async () => {
  const world = new World({ availabilityZones: ["az1"] });
  world.cloud.faults.createFails = Number.POSITIVE_INFINITY;
  const host = { name: "127.0.0.1", labels: ["small"], "host-key-checking": false };
  const limited = fakeProvider("cloud", { "launch-retries": 3 }, { "max-servers": 2 });
  await world.start("a", launcherConfig([limited, staticProvider([host])]));
  for (let at = 0; at < 4; at++) await world.ask({ node_types: ["large", "large"] });
  await world.until("a breaker is written", () => world.children("/nodeyard/breakers").length > 0, 120_000);
  world.cloud.faults.createFails = 0;
  await world.until("a ledger is written", () => world.children("/nodeyard/limits").length > 0);
  await world.until(
    "the host stands",
    () => world.nodes().some(({ provider }) => provider === "lab"),
    120_000,
  );
  expect(strange(world.cluster.log)).toEqual([]);
});
