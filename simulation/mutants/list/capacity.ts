import { faultsIn, type Mutant } from "../mutant.ts";

const SCHEDULER = "packages/nodeyard/src/scheduler";
const LIMITS = "packages/nodeyard/src/launcher/limits";
const RULES = "packages/nodeyard/test/rules";
const TESTS = "packages/nodeyard/test";

/** Limits, their reservation among launchers, and what is kept for whom. */
export const CAPACITY: readonly Mutant[] = [
  ...faultsIn(`${SCHEDULER}/capacity.ts`, [
    {
      name: "no-pool-limit",
      breaks: "rule 3",
      find: "limit: pool.limits,",
      put: "limit: {},",
      tests: [`${TESTS}/scheduler/planning`],
    },
    {
      name: "no-quota",
      breaks: "rule 3",
      find: "return ignoresQuota ? {} : (state.policy.providers.get(provider)?.quota ?? {});",
      put: "return ignoresQuota ? {} : (void state.policy.providers.get(provider), {});",
      tests: [`${TESTS}/scheduler/planning`],
    },
    {
      name: "no-max-concurrency",
      breaks: "rule 3",
      find: "const most = provider?.maxConcurrency ?? Number.POSITIVE_INFINITY;",
      put: "const most = Math.max(provider?.maxConcurrency ?? 0, Number.POSITIVE_INFINITY);",
      tests: [`${TESTS}/scheduler/planning`, `${TESTS}/launcher/limits`],
    },
    {
      name: "head-reserves-nothing",
      breaks: "promise: small work does not delay the head",
      find: "if (compareWaiting(blocked.waiting, waiting) > 0) return;",
      put: "if (compareWaiting(blocked.waiting, waiting) < 2) return;",
      tests: [`${TESTS}/scheduler/planning`],
    },
    {
      name: "nothing-is-kept-where-nothing-is-short",
      breaks: "promise: small work does not delay the head",
      find: "const kept = short === undefined ? keptFor",
      put: "const kept = short !== undefined ? keptFor",
      tests: [`${TESTS}/scheduler/planning`],
    },
    {
      name: "nothing-is-kept-for-who-is-put-back",
      breaks: "promise: small work does not delay the head",
      find: "for (const one of state.requests.putBack.values()) keep(one);",
      put: "for (const one of [...state.requests.putBack.values()].slice(0, 0)) keep(one);",
      tests: [`${TESTS}/scheduler/requests`],
    },
    {
      name: "no-tenant-limit",
      breaks: "rule 3",
      find: "if (tenant === null || limit === undefined) return undefined;\n  const need",
      put: "if (tenant === null || limit === undefined || tenant !== null) return undefined;\n  const need",
      tests: [`${TESTS}/scheduler/planning`],
    },
    {
      name: "tenant-head-reserves-nothing",
      breaks: "promise: order within a tenant",
      find: "if (first === undefined || compareWaiting(first, waiting) >= 0) return undefined;",
      put: "if (first === undefined || compareWaiting(first, waiting) < 2) return undefined;",
      tests: [`${TESTS}/scheduler/planning`, `${TESTS}/scheduler/requests`],
    },
  ]),
  ...faultsIn(`${SCHEDULER}/nodes.ts`, [
    {
      name: "leaving-nodes-do-not-count",
      breaks: "rule 3",
      find: "const keys = after === undefined ? undefined : usageKeys(after);",
      put: 'const keys = after === undefined || after.record.state === "deleting" ? undefined : usageKeys(after);',
      tests: [`${TESTS}/scheduler/counts`],
    },
    {
      name: "launching-nodes-do-not-count",
      breaks: "rule 3",
      find: 'if (record.state === "init" || record.state === "building") keys.push(`launching ${record.provider ?? ""}`);',
      put: "",
      tests: [`${TESTS}/scheduler/counts`],
    },
    {
      name: "idle-nodes-count-for-their-last-tenant",
      breaks: "rule 3",
      find: "if (record.tenantName !== null && record.allocatedTo !== null) keys.push(`tenant ${record.tenantName}`);",
      put: "if (record.tenantName !== null) keys.push(`tenant ${record.tenantName}`);",
      tests: [`${TESTS}/scheduler/counts`],
    },
    {
      name: "freed-capacity-wakes-nobody",
      breaks: "rule 4",
      find: "  for (const key of keys) {\n    const space",
      put: '  for (const key of keys.filter((each) => each.startsWith("tenant "))) {\n    const space',
      tests: [`${TESTS}/scheduler/incremental`, `${TESTS}/scheduler/planning`],
    },
    {
      name: "freed-tenant-wakes-nobody",
      breaks: "rule 4",
      find: 'if (kind === "tenant") wakeTenant(state, name);',
      put: 'if (kind === "tenant") void name;',
      tests: [`${TESTS}/scheduler/incremental`, `${TESTS}/scheduler/planning`],
    },
  ]),
  ...faultsIn(`${SCHEDULER}/reduce.ts`, [
    {
      name: "ended-work-keeps-its-reservation",
      breaks: "rule 4",
      find: "for (const launch of handling.reserved) wakeFreed(state, state.usage.delete(launch.node) ?? []);",
      put: "",
      tests: [`${TESTS}/scheduler/incremental`, `${TESTS}/scheduler/planning`],
    },
    {
      name: "reservations-outlive-the-session",
      breaks: "rule 4",
      find: "for (const launch of state.requests.of(id)!.handling!.reserved) state.usage.delete(launch.node);",
      put: "",
      tests: [`${TESTS}/scheduler/incremental`, `${TESTS}/scheduler/requests`],
    },
  ]),
  ...faultsIn(`${SCHEDULER}/allocate.ts`, [
    {
      name: "planned-launches-do-not-count",
      breaks: "rule 3",
      find: "state.usage.set(holder, keys, { ...node.launch, instances: node.launch.instances ?? 1 });",
      put: "void keys;",
      tests: [`${TESTS}/scheduler/planning`],
    },
    {
      name: "newcomers-take-what-the-head-wants",
      breaks: "promise: small work does not delay the head",
      find: 'else if (next.nodes.every((node) => "launch" in node || !wanted.has(node.label)))',
      put: "else if (wanted.size >= 0)",
      tests: [`${TESTS}/scheduler/counts`],
    },
    {
      name: "head-makes-no-room",
      breaks: "rule 4",
      find: "makeRoom(state, turn, pool, head, plan);",
      put: "void makeRoom;",
      tests: [`${TESTS}/scheduler/planning`],
    },
    {
      name: "makes-room-of-what-it-keeps",
      breaks: "rule 4",
      find: "if (state.busyNodes.has(id) || plan.keeps.has(id)) continue;",
      put: "if (state.busyNodes.has(id)) continue;",
      tests: [`${TESTS}/scheduler/planning`],
    },
    {
      name: "nodes-that-make-room-are-not-replaced",
      breaks: "promise: min-ready",
      find: "for (const label of state.idle.remove(id)?.labels ?? []) state.todo.labels.add(label);",
      put: "state.idle.remove(id);",
      tests: [`${TESTS}/scheduler/min-ready`],
    },
    {
      name: "who-waits-for-quota-overlooks-idle-nodes",
      breaks: "rule 4",
      find: "for (const label of new Set(waiting.record.nodeTypes)) parkForLabel(state, pool, waiting, label);",
      put: "leaveQueue(state, pool, waiting);",
      tests: [`${TESTS}/scheduler/incremental`],
    },
    {
      name: "starts-as-many-as-it-likes",
      breaks: "rule 8",
      find: "if (state.requests.starting.size >= state.policy.maxStarting) {",
      put: "if (false) {",
      tests: [`${TESTS}/scheduler/planning`, `${TESTS}/scheduler/requests`],
    },
    {
      name: "yields-for-ever",
      breaks: "rule 4",
      find: 'state.timers.set("yield", waiting.id, since + YIELD_MS);',
      put: "",
      tests: [`${TESTS}/scheduler/planning`, `${TESTS}/scheduler/requests`],
    },
    {
      name: "nobody-is-told-that-a-pool-is-full",
      breaks: "protocol: components",
      find: 'turn.actions.push({ type: "pause", pool: pool.policy.key, paused });',
      put: "void turn;",
      tests: [`${TESTS}/scheduler/planning`, `${RULES}/protocol-components`],
    },
  ]),
  ...faultsIn(`${LIMITS}/ledger-cache.ts`, [
    {
      name: "ledgers-are-written-over",
      breaks: "rule 3",
      find: "data: encodeLedger(sums.get(scope)!), version };",
      put: "data: encodeLedger(sums.get(scope)!), version: version < 0 ? version : undefined } as Op;",
    },
    {
      name: "ledgers-refuse-nothing",
      breaks: "rule 3",
      find: "if (limit === undefined) continue;",
      put: "if (limit !== undefined || limit === undefined) continue;",
    },
    {
      name: "refused-by-an-old-sum",
      breaks: "rule 3",
      find: "} else if (fresh.has(over.scope)) {",
      put: "} else if (fresh !== undefined) {",
      tests: [`${TESTS}/launcher/ledger-cache`],
    },
    {
      name: "moved-ledger-is-not-read-again",
      breaks: "rule 3",
      find: "if (moved) for (const scope of scopes) this.#known.delete(scope);",
      put: "",
      tests: [`${RULES}/rule-03-shared`],
    },
  ]),
  ...faultsIn(`${LIMITS}/ledger.ts`, [
    {
      name: "tenants-reserve-nothing",
      breaks: "rule 3",
      find: "for (const [tenant, limit] of limits) this.#set(scopeOf.tenant(tenant), limit);",
      put: "",
    },
    {
      name: "pools-reserve-nothing",
      breaks: "rule 3",
      find: "this.#set(scopeOf.pool(key), limits);",
      put: "void [key, limits];",
      tests: [`${RULES}/rule-03-shared`],
    },
    {
      name: "quotas-reserve-nothing",
      breaks: "rule 3",
      find: "this.#set(scopeOf.provider(name), quota);",
      put: "void [name, quota];",
      tests: [`${RULES}/rule-03-shared`, `${RULES}/rule-03-limits`],
    },
    {
      name: "wrong-ledgers-stay-wrong",
      breaks: "rule 3",
      find: "if (off.length > 0) await this.#repair(off);",
      put: "void off;",
      tests: [`${RULES}/rule-03-shared`, `${RULES}/rule-03-limits`],
    },
  ]),
  ...faultsIn(`${LIMITS}/holdings.ts`, [
    {
      name: "idle-nodes-hold-a-limit-of-their-tenant",
      breaks: "rule 3",
      find: "if (record.tenantName !== null && record.allocatedTo !== null)",
      put: "if (record.tenantName !== null)",
      tests: [`${RULES}/rule-03-shared`],
    },
  ]),
];
