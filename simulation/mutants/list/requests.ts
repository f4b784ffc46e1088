import { faultsIn, type Mutant } from "../mutant.ts";

const LAUNCHER = "packages/nodeyard/src/launcher";
const RULES = "packages/nodeyard/test/rules";
const TESTS = "packages/nodeyard/test/launcher";

/** Accepting, delivering, declining and putting back. */
export const REQUESTS: readonly Mutant[] = [
  ...faultsIn(`${LAUNCHER}/requests/accept.ts`, [
    {
      name: "accepts-without-trust",
      breaks: "rule 1",
      find: 'return mayAct(context) ? context.fence.lockExisting(paths.requestLock(id)) : "busy";',
      put: "return context.fence.lockExisting(paths.requestLock(id));",
      tests: [`${TESTS}/taken-back`],
    },
    {
      name: "accepts-what-changed",
      breaks: "protocol: locks",
      find: "if (!isOpen(request.record, entry.record)) {",
      put: "if (false) {",
      tests: [`${RULES}/protocol-locks`],
    },
    {
      name: "accepts-for-a-pool-that-left",
      breaks: "protocol: components",
      find: "if (context.pools.get(pool.key) !== pool)",
      put: "if (false)",
      tests: [`${RULES}/protocol-components`, `${RULES}/rule-08-reload`],
    },
    {
      name: "reset-by-the-view",
      breaks: "protocol: locks",
      find: "if (entry !== undefined && !fresh) return",
      put: "if (entry !== undefined) return",
      tests: [`${TESTS}/taken-back`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/requests/finish.ts`, [
    {
      name: "delivers-locked-nodes",
      breaks: "protocol: locks",
      find: "...nodes.map(unlock),\n    set,",
      put: "set,",
    },
    {
      name: "delivers-before-it-unlocks",
      breaks: "protocol: locks",
      find: "...nodes.map(unlock),\n    set,\n    unlock(request),",
      put: "set,\n    unlock(request),\n    ...nodes.map(unlock),",
    },
    {
      name: "delivers-in-another-order",
      breaks: "rule 2",
      find: "nodes: nodes.map((node) => node.id) }",
      put: "nodes: nodes.map((node) => node.id).sort() }",
      tests: [`${RULES}/rule-02-whole-nodesets`],
    },
    {
      name: "keeps-nodes-of-a-request-that-ended",
      breaks: "rule 2",
      find: "else await node.write({ allocatedTo: null }, (set) => [set, unlock(node)]);",
      put: "else await context.fence.release(node.held);",
      tests: [`${RULES}/rule-02-whole-nodesets`],
    },
    {
      name: "fails-before-all-declined",
      breaks: "protocol: components",
      find: "if (!declinedBy.includes(record.id)) return false;",
      put: "",
      tests: [`${RULES}/protocol-decline`],
    },
    {
      name: "never-fails",
      breaks: "rule 4",
      find: 'const state = everyoneDeclined(context, declinedBy) ? "failed" : "requested";',
      put: 'const state = "requested" as "failed" | "requested";',
      tests: [`${RULES}/protocol-decline`],
    },
    {
      name: "fails-by-half-a-registry",
      breaks: "protocol: components",
      find: "if (!view.complete) return false;\n  let pools = 0;",
      put: "let pools = 0;",
      tests: [`${RULES}/protocol-decline`, `${RULES}/protocol-components`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/requests/handler.ts`, [
    {
      name: "delivers-half-a-nodeset",
      breaks: "rule 2",
      find: 'if (outcomes.every((outcome) => outcome.result === "ready")) {',
      put: 'if (outcomes.some((outcome) => outcome.result === "ready")) {',
    },
    {
      name: "a-failed-launch-is-not-declined",
      breaks: "rule 4",
      find: "if (failed.length > 0) {",
      put: "if (failed.length < 0) {",
      tests: [`${TESTS}/life`, `${RULES}/protocol-decline`],
    },
    {
      name: "nodes-of-a-lost-request-stay-locked",
      breaks: "rule 4",
      find: "await releaseNodes(context, nodes);\n    await context.fence.release(request.held).catch(() => {});",
      put: "",
      tests: [`${TESTS}/taken-back`],
    },
    {
      name: "lost-session-abandons-nothing",
      breaks: "rule 1",
      find: "const replan = signal.aborted || isReplannable(error);",
      put: "const replan = isReplannable(error);",
      tests: [`${RULES}/rule-01-effects`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/requests/finish.ts`, [
    {
      name: "resets-what-is-served",
      breaks: "rule 1",
      find: 'if (request.record.state !== "pending") {',
      put: "if (false) {",
      tests: [`${TESTS}/taken-back`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/tree-leftovers.ts`, [
    {
      name: "lock-parents-of-live-requests-go",
      breaks: "rule 1",
      find: ".filter((name) => !view.requests.byId.has(name) && !view.unreadable.has(paths.request(name)))",
      put: ".filter((name) => name !== view.nodes.byId.get(name)?.id)",
      tests: [`${RULES}/rule-08-waits`],
    },
    {
      name: "lock-parents-go-at-once",
      breaks: "protocol: locks",
      find: "if (ages.now() - stat.mtime <= KEEP_MS) return false;",
      put: "",
      tests: [`${RULES}/rule-08-waits`],
    },
    {
      name: "lock-parents-never-go",
      breaks: "rule 8",
      find: "if (ages.now() - stat.mtime <= KEEP_MS) return false;",
      put: "return false;",
      tests: [`${RULES}/rule-08-waits`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/tasks.ts`, [
    {
      name: "a-lost-session-stops-no-task",
      breaks: "rule 1",
      find: 'this.#session.abort(new Error("the session with the tree ended"));',
      put: "",
      tests: [`${RULES}/rule-01-effects`],
    },
    {
      name: "lost-work-is-never-tried-again",
      breaks: "rule 4",
      find: 'return { type: "handled", request, retryMs, unsure, putBack };',
      put: 'return { type: "handled", request, retryMs: retryMs + 1e9, unsure: false, putBack };',
    },
  ]),
];
