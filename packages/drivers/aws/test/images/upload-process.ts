import { writeFileSync } from "node:fs";
import { runSteps } from "@nodeyard/driver";
import { AwsServer } from "../../../../../testing/aws/index.ts";
import { contextOf } from "../rig.ts";
import { fastClock, ImageRig, orderOf, stored, tagOf } from "./rig.ts";

/**
 * An upload in a process of its own, which a test kills: what it stores survives in `checkpoint`. With `hold` it stops when it has stored
 * that something has arrived, as one does whose store is slow.
 */
const [url, site, file, size, checkpoint, hold] = process.argv.slice(2) as string[];
const rig = new ImageRig(AwsServer.at(url!), JSON.parse(site!));
const config = rig.compiled({ "import-method": "ebs-direct" });
const provider = await rig.open(config, contextOf(undefined, { clock: fastClock }));
const order = orderOf(file!, Number(size), tagOf("0000000001"));
const id = await runSteps((context) => provider.offers!.images!.upload(order, context), {
  clock: fastClock,
  signal: new AbortController().signal,
  externalId: stored(checkpoint!),
  async save(known) {
    writeFileSync(checkpoint!, JSON.stringify(known));
    if (hold === undefined || typeof known === "string" || !known.pieces) return;
    console.log("stored");
    setInterval(() => {}, 60_000);
    await new Promise(() => {});
  },
});
await provider.close();
console.log(`ready ${JSON.stringify(id)}`);
