import { parseArgs } from "node:util";
import { campaign } from "./campaign.ts";
import type { StoreName } from "./site.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    store: { type: "string" },
    seed: { type: "string", default: "1" },
  },
});
const stores = values.store === undefined ? ["zookeeper", "embedded"] : [values.store];
for (const store of stores) {
  if (store !== "zookeeper" && store !== "embedded") {
    console.error(`no store ${store}: --store zookeeper or --store embedded`);
    process.exit(2);
  }
  const result = await campaign({
    store: store satisfies StoreName,
    kills: Number(values.kills),
    seed: Number(values.seed),
    onKill: (what) => console.error(`${store} ${what}`),
  });
  console.log(JSON.stringify({ store, seed: Number(values.seed), ...result }));
}
process.exit(0);
