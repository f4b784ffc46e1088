import { parseArgs } from "node:util";
import { simulate } from "./run.ts";

const { values } = parseArgs({
  options: { seed: { type: "string" }, seeds: { type: "string" }, from: { type: "string", default: "1" } },
});
const first = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds ?? 20) : 1;
let failed = 0;
for (let seed = first; seed < first + count; seed++) {
  try {
    console.log(JSON.stringify(await simulate({ seed })));
  } catch (error) {
    failed++;
    console.log(`seed ${seed}: ${(error as Error).stack}`);
  }
}
console.log(`${count - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
