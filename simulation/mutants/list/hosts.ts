import { faultsIn, type Mutant } from "../mutant.ts";

const SCHEDULER = "packages/nodeyard/src/scheduler";
const TESTS = "packages/nodeyard/test";
const INVENTORY = [`${TESTS}/scheduler/inventory`];
const ORDER = "promise: hosts are given out in order";

/** Hosts that exist on their own: for whom they are kept, and who is woken for what is idle. */
export const HOSTS: readonly Mutant[] = [
  ...faultsIn(`${SCHEDULER}/inventory.ts`, [
    {
      name: "later-requests-keep-their-hosts",
      breaks: ORDER,
      find: "this.#compareWants(filled, last ?? want) > 0",
      put: "this.#compareWants(filled, last ?? want) > 2",
      tests: INVENTORY,
    },
    {
      name: "hosts-are-never-exchanged",
      breaks: ORDER,
      find: "for (const next of this.#spare.get(label)?.keys() ?? []) if (!paths.has(next)) paths.set(next, label);",
      put: "void this.#spare;",
      tests: INVENTORY,
    },
    {
      name: "a-host-that-fails-is-not-replaced",
      breaks: ORDER,
      find: "if (want !== undefined) this.#fill(want);",
      put: "if (want !== undefined) this.#lines.add(want.label, want.owner);",
      tests: INVENTORY,
    },
  ]),
  ...faultsIn(`${SCHEDULER}/waiting.ts`, [
    {
      name: "who-gets-the-last-host-is-not-woken",
      breaks: "rule 4",
      find: "for (const next of pool.inventory.leave(id)) onHostKept(state, pool, next);",
      put: "void [state, pool.inventory.leave(id)];",
      tests: INVENTORY,
    },
    {
      name: "hosts-are-kept-for-more-than-there-are",
      breaks: ORDER,
      find: "if (!pool.hosts.enoughFor(waiting)) {",
      put: "if (!pool.hosts.enoughFor(waiting) && pool.inventory.size < 0) {",
      tests: INVENTORY,
    },
    {
      name: "who-was-woken-wakes-nobody",
      breaks: "rule 4",
      find: "wakeForLabels(state, pool, idle, waiting);",
      put: "void idle;",
      tests: [`${TESTS}/scheduler/planning`, `${TESTS}/scheduler/incremental`],
    },
  ]),
  ...faultsIn(`${SCHEDULER}/hosts.ts`, [
    {
      name: "hosts-are-kept-above-the-tenants-limit",
      breaks: ORDER,
      find: "if (waiting.record.tenantName === tenant) enqueue(state, pool, waiting);",
      put: 'if (waiting.record.tenantName === tenant && tenant === "") enqueue(state, pool, waiting);',
      tests: INVENTORY,
    },
    {
      name: "a-host-that-left-is-waited-for-forever",
      breaks: ORDER,
      find: "turn.steady + HOST_BACK_MS",
      put: "turn.steady + 1_000 * HOST_BACK_MS",
      tests: INVENTORY,
    },
  ]),
];
