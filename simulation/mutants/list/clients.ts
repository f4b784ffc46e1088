import { faultsIn, type Mutant } from "../mutant.ts";

const CLIENT = "packages/nodeyard/src/launcher/clients";
const OPERATIONS = "packages/nodeyard/src/operations";
const RULES = "packages/nodeyard/test/rules";
const TESTS = "packages/nodeyard/test";

/** Leases, min-ready requests and what people do by hand. */
export const CLIENTS: readonly Mutant[] = [
  ...faultsIn(`${CLIENT}/leases.ts`, [
    {
      name: "leases-end-30-s-early",
      breaks: "promise: a lease is as long as it was asked for",
      find: "return ages.stored(leasePath(id), expires, expires - created) - clock.monotonic();",
      put: "return ages.stored(leasePath(id), expires, expires - created) - 30_000 - clock.monotonic();",
      tests: [`${RULES}/rule-01-leases`, `${TESTS}/launcher/leases`],
    },
    {
      name: "leases-never-end",
      breaks: "promise: a lease ends",
      find: "if (left <= 0 && ages.trusted) return this.#expire(lease, entry);",
      put: "",
      tests: [`${RULES}/rule-01-leases`, `${TESTS}/launcher/leases`],
    },
    {
      name: "leases-end-while-the-clock-is-in-doubt",
      breaks: "rule 8",
      find: "if (left <= 0 && ages.trusted)",
      put: "if (left <= 0)",
      tests: [`${TESTS}/launcher/clock-jumps`],
    },
    {
      name: "ended-leases-keep-their-nodes",
      breaks: "rule 4",
      find: "for (const id of lease.nodes) await giveBack(this.#context, lease.id, id);",
      put: "",
      tests: [`${TESTS}/launcher/leases`],
    },
    {
      name: "requests-outlive-their-lease",
      breaks: "rule 4",
      find: "if (request !== undefined) await this.#withdraw(lease.id, request.id);",
      put: "",
      tests: [`${TESTS}/launcher/leases`],
    },
    {
      name: "failed-leases-wait-for-ever",
      breaks: "rule 4",
      find: 'if (request.record.state === "failed") return this.#fail(lease, entry, request);',
      put: 'if (request.record.state === "failed") return;',
      tests: [`${TESTS}/launcher/leases`],
    },
    {
      name: "lease-is-granted-over-another-write",
      breaks: "rule 1",
      find: "data: encodeLease(granted, entry.data), version: entry.version },",
      put: "data: encodeLease(granted, entry.data) },",
      tests: [`${RULES}/rule-01-lease-holds`],
    },
    {
      name: "lease-is-granted-without-all-its-nodes",
      breaks: "rule 2",
      find: "if (await holdNode(this.#context, lease, entry, request.id, id)) continue;",
      put: "if ((await holdNode(this.#context, lease, entry, request.id, id)) || id !== request.record.nodes[0]) continue;",
      tests: [`${RULES}/rule-01-leases`, `${TESTS}/launcher/leases`],
    },
    {
      name: "holds-of-ended-leases-stay",
      breaks: "rule 4",
      find: "    await this.#takeBackNodes(id);\n",
      put: "    void this.#takeBackNodes;\n",
      tests: [`${TESTS}/launcher/leases`, `${RULES}/rule-01-leases`],
    },
  ]),
  ...faultsIn(`${CLIENT}/lease-holds.ts`, [
    {
      name: "lease-holds-a-node-of-another-request",
      breaks: "rule 1",
      find: "if (node.record.allocatedTo !== request) return false;\n",
      put: "",
      tests: [`${RULES}/rule-01-lease-holds`],
    },
    {
      name: "lease-uses-a-node-of-another-request",
      breaks: "rule 1",
      find: 'if (node?.record.allocatedTo !== request || node.record.state !== "ready") {',
      put: 'if (node === undefined || node.record.state !== "ready") {',
      tests: [`${RULES}/rule-01-lease-holds`],
    },
    {
      name: "lease-holds-while-somebody-stands-between",
      breaks: "rule 1",
      find: "if (holderOf(behind) === made.path.slice(parent.length + 1))",
      put: "if (behind !== undefined)",
      tests: [`${RULES}/rule-01-lease-holds`],
    },
    {
      name: "released-lease-holds-a-node",
      breaks: "rule 1",
      find: '      { op: "check", path: node.held.contender },\n      stands,\n',
      put: '      { op: "check", path: node.held.contender },\n      { op: "check", path: node.path },\n',
      tests: [`${TESTS}/launcher/leases`],
    },
    {
      name: "given-back-though-another-has-the-lock",
      breaks: "rule 1",
      find: "if (holderOf(names) === name) await markUsed(context, id, path);",
      put: "if (names.length > 0) await markUsed(context, id, path);",
      tests: [`${RULES}/rule-01-lease-holds`],
    },
    {
      name: "given-back-nodes-are-free-for-all",
      breaks: "promise: a used node is given to nobody else",
      find: 'await node.write({ state: "used" }, (set) => [set, { op: "delete", path: contender }]);',
      put: 'await node.write({ state: "ready", allocatedTo: null }, (set) => [set, { op: "delete", path: contender }]);',
      tests: [`${TESTS}/launcher/leases`],
    },
  ]),
  ...faultsIn(`${CLIENT}/min-ready.ts`, [
    {
      name: "min-ready-frees-what-is-taken",
      breaks: "rule 1",
      find: 'if (node === undefined || node.record.allocatedTo !== entry.id || node.record.state !== "ready") continue;',
      put: 'if (node === undefined || node.record.state !== "ready") continue;',
      tests: [`${TESTS}/launcher/min-ready`],
    },
    {
      name: "min-ready-frees-over-another-write",
      breaks: "decision: every write is fenced",
      find: "data, version: node.version });",
      put: "data });",
      tests: [`${TESTS}/launcher/min-ready`],
    },
    {
      name: "min-ready-outlives-its-launcher",
      breaks: "protocol: min-ready requests end with their session",
      find: "data, { ephemeral: true, sequential: true }),",
      put: "data, { sequential: true }),",
    },
    {
      name: "min-ready-reuses",
      breaks: "promise: min-ready",
      find: "reuse: false,",
      put: "reuse: true,",
      tests: [`${TESTS}/launcher/min-ready`],
    },
  ]),
  ...faultsIn(`${CLIENT}/min-ready.ts`, [
    {
      name: "min-ready-requests-stay",
      breaks: "rule 4",
      find: "await retireMinReady(this.#context, entry);\n",
      put: "return;\n",
    },
  ]),
  ...faultsIn(`${OPERATIONS}/node-state.ts`, [
    {
      name: "operators-write-over-the-launcher",
      breaks: "decision: every write is fenced",
      find: '{ op: "check", path: held.contender },\n',
      put: "",
      tests: [`${TESTS}/operations/node-state`],
    },
    {
      name: "operators-write-any-state",
      breaks: "protocol: states go as the table says",
      find: 'if (!mayGo("node", before.state, patch.state)) throw',
      put: 'if (!mayGo("node", before.state, patch.state) && id === "") throw',
      tests: [`${TESTS}/operations/node-state`],
    },
    {
      name: "holds-without-an-end-of-their-own",
      breaks: "promise: a hold ends",
      find: "holdExpiration: facts.forSeconds > 0 ? facts.forSeconds : null,",
      put: "holdExpiration: null,",
      tests: [`${TESTS}/operations/node-state`],
    },
    {
      name: "operators-keep-locks",
      breaks: "rule 4",
      find: "    await held.release();\n",
      put: "",
      tests: [`${TESTS}/operations/node-state`],
    },
  ]),
  ...faultsIn(`${OPERATIONS}/request.ts`, [
    {
      name: "lost-requests-keep-their-lease",
      breaks: "protocol: lost replies",
      find: "await releaseLease(handles, lease.id).catch(() => {});\n    throw error;",
      put: "throw error;",
      tests: [`${TESTS}/operations/request`],
    },
    {
      name: "a-lease-of-half-its-length",
      breaks: "promise: a lease is as long as it was asked for",
      find: "const until = now + forMs;",
      put: "const until = now + forMs / 2;",
      tests: [`${TESTS}/launcher/leases`],
    },
    {
      name: "released-leases-stay-granted",
      breaks: "rule 4",
      find: 'if (!(error instanceof TreeError) || !["tree.bad_version", "tree.no_node"].includes(error.code))',
      put: 'if (error instanceof TreeError) return "released";\n      if (!["tree.bad_version", "tree.no_node"].includes(""))',
      tests: [`${TESTS}/operations/request`],
    },
  ]),
];
