/** A launcher that does not shut down in order: it makes one machine, prints what it made, and waits to be killed. */

import { qemuDriver } from "@nodeyard/driver-qemu";
import { Launches } from "./machines.ts";
import { compile, contextOf } from "./rig.ts";

const [raw, nodeId] = process.argv.slice(2) as [string, string];
const config = { ...compile(JSON.parse(raw)), name: "local" };
const provider = await qemuDriver.open(config, contextOf(Launches.installation));
const launches = new Launches(
  { config, pool: config.pools[0]!, label: [...config.pools[0]!.labels.values()][0]! },
  provider,
);
process.stdout.write(`${JSON.stringify(await launches.create(nodeId))}\n`);
setInterval(() => {}, 60_000);
