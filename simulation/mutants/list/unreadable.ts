import { faultsIn, type Mutant } from "../mutant.ts";

const LAUNCHER = "packages/nodeyard/src/launcher";
const SCHEDULER = "packages/nodeyard/src/scheduler";
const RULES = "packages/nodeyard/test/rules";
const UNREADABLE = [`${RULES}/rule-06-unreadable`];
const FENCES = [`${RULES}/protocol-fences`];

/** Records that cannot be read, and the fences of writes that nobody else checks. */
export const UNREADABLES: readonly Mutant[] = [
  ...faultsIn("packages/nodeyard/src/view/unreadable.ts", [
    {
      name: "unreadable-is-absent",
      breaks: "decision: a record that cannot be read exists",
      find: "    this.byPath.set(after.path, after);\n",
      put: "    if (after.version >= 0) return { type: 'unreadable', path: after.path, before, after };\n",
      tests: UNREADABLE,
    },
    {
      name: "unreadable-is-of-no-provider",
      breaks: "decision: a record that cannot be read exists",
      find: 'return typeof provider === "string" ? provider === name : true;',
      put: "return provider === name;",
      tests: UNREADABLE,
    },
  ]),
  ...faultsIn("packages/nodeyard/src/view/view.ts", [
    {
      name: "emptied-is-absent",
      breaks: "decision: a record that cannot be read exists",
      find: "if (data?.length === 0 && (stat?.version ?? 0) > 0 && RECORDS.has(place.kind))",
      put: "if (data?.length === 0 && (stat?.version ?? 0) < 0 && RECORDS.has(place.kind))",
      tests: UNREADABLE,
    },
  ]),
  ...faultsIn(`${LAUNCHER}/providers/leaks.ts`, [
    {
      name: "leaks-go-beside-the-unreadable",
      breaks: "decision: a record that cannot be read exists",
      find: "if (unreadable.length > 0) return this.#suspend(unreadable);",
      put: "if (unreadable.length > 99) return this.#suspend(unreadable);",
      tests: UNREADABLE,
    },
  ]),
  ...faultsIn(`${LAUNCHER}/providers/slots.ts`, [
    {
      name: "unreadable-has-no-host",
      breaks: "rule 1",
      find: 'if (typeof hostname !== "string") return true;',
      put: 'if (typeof hostname !== "string") return false;',
      tests: UNREADABLE,
    },
    {
      name: "unreadable-has-no-slot",
      breaks: "rule 1",
      find: 'return typeof slot !== "number" || slot === at;',
      put: "return slot !== slot && at < 0;",
      tests: UNREADABLE,
    },
  ]),
  ...faultsIn(`${LAUNCHER}/limits/count.ts`, [
    {
      name: "ledgers-forget-the-unreadable",
      breaks: "rule 3",
      find: "if (this.more(scope) === undefined) return least;",
      put: "if (this.more(scope) !== null) return least;",
      tests: UNREADABLE,
    },
  ]),
  ...faultsIn(`${SCHEDULER}/unreadable.ts`, [
    {
      name: "scheduler-forgets-the-unreadable",
      breaks: "rule 3",
      find: "    count(state, id, known);\n  }\n  // It happens",
      put: "  }\n  // It happens",
      tests: UNREADABLE,
    },
  ]),
  ...faultsIn(`${SCHEDULER}/node-due.ts`, [
    {
      name: "unreadable-request-loses-its-nodes",
      breaks: "decision: a record that cannot be read exists",
      find: "if (state.unreadable.requests.has(request)) return true;",
      put: "",
      tests: UNREADABLE,
      survives:
        "the task that would free the node reads the request again, and fails on it: only log lines tell",
    },
  ]),
  ...faultsIn(`${LAUNCHER}/nodes/delete-node.ts`, [
    {
      name: "deletes-what-may-have-been-saved",
      breaks: "decision: every write to a held record is fenced",
      find: 'else if (record.state === "deleting") await node.confirm();',
      put: "",
      tests: FENCES,
    },
    {
      name: "clears-a-line-that-it-does-not-head",
      breaks: "decision: every write to a held record is fenced",
      find: '      { op: "check", path: held.contender },\n',
      put: "",
      tests: FENCES,
    },
  ]),
  ...faultsIn(`${LAUNCHER}/nodes/create-node.ts`, [
    {
      name: "a-node-for-a-lost-request",
      breaks: "decision: every write to a held record is fenced",
      find: '        { op: "check", path: request.held.contender },\n',
      put: '        { op: "check", path: paths.nodes },\n',
      tests: FENCES,
    },
    {
      name: "builds-for-a-lost-request",
      breaks: "decision: every write to a held record is fenced",
      find: 'const check = { op: "check", path: request.held.contender } as const;',
      put: 'const check = { op: "check", path: paths.nodes } as const;',
      tests: FENCES,
    },
  ]),
  ...faultsIn(`${LAUNCHER}/metastatic/backing-lock.ts`, [
    {
      name: "fails-a-node-that-is-not-ours",
      breaks: "decision: every write to a held record is fenced",
      find: '    { op: "check", path: contender },\n',
      put: "",
      tests: FENCES,
    },
  ]),
  ...faultsIn(`${LAUNCHER}/metastatic/compare.ts`, [
    {
      name: "claims-though-not-the-owner",
      breaks: "decision: every write to a held record is fenced",
      find: "data: encodeClaim(id) },\n    fence,\n",
      put: "data: encodeClaim(id) },\n",
      tests: FENCES,
    },
  ]),
  ...faultsIn(`${LAUNCHER}/failure-records.ts`, [
    {
      name: "ends-the-try-of-another",
      breaks: "decision: every write to a held record is fenced",
      find: "return stat !== undefined && stat.ephemeralOwner === tree.session().id;",
      put: "return stat !== undefined;",
      tests: FENCES,
    },
  ]),
];
