import { relative } from "node:path";
import { startVitest } from "vitest/node";
import { sourcesIn } from "./files.ts";
import { type FileReach, reachPlugin } from "./reach.ts";

// A process of its own: arguments are the rooms, a comma, and the tests. One line of JSON on standard output: what each test file reached.
const [rooms = "", ...tests] = process.argv.slice(2);
const sources = new Map(
  rooms.split(",").flatMap((room) => sourcesIn(room).map((file) => [file, room] as const)),
);
const vitest = await startVitest(
  "test",
  tests,
  {
    run: true,
    watch: false,
    retry: 0,
    reporters: [{}],
    coverage: { enabled: false },
    fsModuleCache: false,
  },
  { plugins: [reachPlugin(sources)] },
);
const found = vitest.state.getTestModules().map((module): FileReach => {
  const { reached = [] } = module.meta() as { readonly reached?: readonly string[] };
  const file = relative(process.cwd(), module.moduleId).replace(/\.test\.ts$/, "");
  return { file, ms: Math.ceil(module.diagnostic().duration), reached };
});
await vitest.close();
process.stdout.write(`\n${JSON.stringify(found)}\n`, () => process.exit(0));
