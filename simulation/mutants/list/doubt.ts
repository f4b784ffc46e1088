import { faultsIn, type Mutant } from "../mutant.ts";

const SRC = "packages/nodeyard/src";
const TESTS = "packages/nodeyard/test";
const UNREADABLE = [`${TESTS}/rules/rule-06-unreadable`];
const LAGGING = [`${TESTS}/launcher/lagging-server`];
const CLOCKS = [`${TESTS}/launcher/clock-jumps`];

/** Records that cannot be read, servers that are behind, and clocks that jump. */
export const DOUBT: readonly Mutant[] = [
  ...faultsIn(`${SRC}/launcher/tree-leftovers.ts`, [
    {
      name: "locks-of-unreadable-requests-go",
      breaks: "rule 1",
      find: "&& !view.unreadable.has(paths.request(name)))",
      put: ")",
      tests: UNREADABLE,
    },
  ]),
  ...faultsIn(`${SRC}/coordination/registration.ts`, [
    {
      name: "component-is-looked-for-on-a-server-behind",
      breaks: "protocol: lost replies",
      find: "await tree.sync(parent);",
      put: "",
      tests: LAGGING,
    },
  ]),
  ...faultsIn("packages/runtime/src/stored-times.ts", [
    {
      name: "stored-times-of-days-ahead-are-believed",
      breaks: "rule 8",
      find: "Math.min(instant - now, aheadMs)",
      put: "Math.min(instant - now, aheadMs * 1e6)",
      tests: CLOCKS,
    },
    {
      name: "stored-times-move-with-the-clock",
      breaks: "rule 8",
      find: "if (known !== undefined && known.instant === instant) return known.steady;",
      put: "",
      tests: CLOCKS,
    },
  ]),
  ...faultsIn(`${SRC}/scheduler/failure-rule.ts`, [
    {
      name: "closed-offerings-may-be-tried-at-once",
      breaks: "rule 8",
      find: "return until <= now;",
      put: "return until <= now || until > 0;",
      tests: [`${TESTS}/scheduler/offerings`, `${TESTS}/launcher/breakers`],
    },
  ]),
];
