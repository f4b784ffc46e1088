import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { HttpRequest } from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import { systemClock } from "@nodeyard/runtime";
import { CloudUser } from "../../../../../testing/openstack/admin.ts";
import { contextOf, empty, hostOf } from "../../../../../testing/openstack/rig.ts";
import { OpenstackSite } from "../../../../../testing/openstack/site.ts";
import { createOpenstackDriver } from "../../src/index.ts";
import { type Exchange, exchangeOf, readRecordings, writeRecordings } from "./exchange.ts";
import { sentOf } from "./player.ts";
import { FILE, scenarios } from "./scenarios.ts";

/** Records what a real cloud answers, for the unit tests: `node tools/run.mjs packages/drivers/openstack/test/recorded/record.ts [NAME ...]`, then `npm run format`. */

const recordings = { ...readRecordings() };
const site = OpenstackSite.start();
const user = new CloudUser(site, "nodeyard");
const host = hostOf(site);
const bytes = new Uint8Array(FILE.size).fill(FILE.fill);

for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(scenarios)) {
  await empty(user);
  const exchanges: Exchange[] = [];
  const driver = createOpenstackDriver({
    ...host,
    hasIpv6: () => false,
    async *openFile() {
      yield bytes;
    },
    connect: (tls) => recorded(tls, exchanges),
  });
  const outcome = await scenarios[name]!({
    clock: systemClock,
    open: (config) => driver.open(config, contextOf("6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01")),
    async faults(faults) {
      site.faults(faults);
      await sleep(200);
    },
  });
  recordings[name] = { exchanges, outcome };
  writeRecordings(recordings);
  process.stderr.write(`${name}: ${exchanges.length} calls, md5 of the file ${md5()}\n`);
}
await user.close();

function recorded(tls: TlsOptions, exchanges: Exchange[]) {
  const real = host.connect(tls);
  return {
    close: () => real.close(),
    async send(request: HttpRequest) {
      const streamed = request.body !== undefined && typeof request.body !== "string";
      const sent = streamed ? { bytes: FILE.size } : await sentOf(request);
      const answer = await real.send(request);
      exchanges.push(await exchangeOf(request, sent, answer));
      return answer;
    },
  };
}

function md5(): string {
  return createHash("md5").update(bytes).digest("hex");
}
