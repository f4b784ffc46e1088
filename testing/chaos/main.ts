import { parseArgs } from "node:util";
import { campaign } from "./campaign.ts";
import { STORES, type StoreName } from "./site.ts";

const HELP = `node tools/run.mjs testing/chaos/main.ts [options]

  --kills N       launchers killed (default 100)
  --store NAME    ${STORES.join(", ")} (default: each in turn); with ensemble the leader dies too
  --seed N        of the plan (default 1)

Exit code 0: no rule was broken; 1: one was; 2: wrong options.
`;

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    store: { type: "string" },
    seed: { type: "string", default: "1" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const kills = number("--kills", values.kills);
const seed = number("--seed", values.seed);
const stores = values.store === undefined ? STORES : [values.store];
for (const store of stores) {
  if (!isStore(store)) {
    console.error(`there is no store ${store}\n\n${HELP}`);
    process.exit(2);
  }
  const result = await campaign({
    store,
    kills,
    seed,
    onKill: (what) => console.error(`${store} ${what}`),
  });
  console.log(JSON.stringify({ store, seed, ...result }));
}
process.exit(0);

/** A campaign of no kills would find nothing broken. */
function number(option: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  console.error(`${option} ${JSON.stringify(text)} is no positive number\n\n${HELP}`);
  process.exit(2);
}

function isStore(name: string): name is StoreName {
  return STORES.some((store) => store === name);
}
