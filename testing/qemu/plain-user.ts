/** Tests a launcher that is not root: makes and removes a machine, tries what needs root, and prints the results. */

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DriverError } from "@nodeyard/driver";
import { qemuDriver } from "@nodeyard/driver-qemu";
import { Launches } from "./machines.ts";
import { compile, contextOf } from "./rig.ts";

const raw = JSON.parse(process.argv[2] as string) as { readonly folder: string };
const pools = [{ name: "main", labels: [{ name: "vm", "cloud-image": "blank", ram: 16, disk: 1 }] }];
const configOf = (more: object) => ({ ...compile({ ...raw, pools, ...more }), name: "local" });
const refused = (more: object) =>
  qemuDriver.open(configOf(more), contextOf(Launches.installation)).then(
    () => "taken",
    (error: DriverError) => `${error.kind}: ${error.message}`,
  );

const config = configOf({});
const provider = await qemuDriver.open(config, contextOf(Launches.installation));
const [pool] = config.pools;
const launches = new Launches({ config, pool: pool!, label: pool!.labels.get("vm")! }, provider);
await launches.create("0000000001");
const [name] = readdirSync(join(raw.folder, "nodes"));
const pid = readFileSync(join(raw.folder, "nodes", name as string, "run", "qemu.pid"), "utf8").trim();
const { uid } = statSync(`/proc/${pid}`);
const listed = (await provider.list(new AbortController().signal)).length;
await launches.remove("0000000001");
const left = readdirSync(join(raw.folder, "nodes")).length + Number(existsSync(`/proc/${pid}/exe`));
const own = `${process.getuid?.()}`;
process.stdout.write(
  JSON.stringify({
    uid,
    listed,
    left,
    outbound: await refused({ network: "outbound", user: own }),
    user: await refused({ user: "61235" }),
    users: await refused({ user: own, users: "61300-61301" }),
  }),
);
