import { faultsIn, type Mutant } from "../mutant.ts";

const LAUNCHER = "packages/nodeyard/src/launcher";
const RULES = "packages/nodeyard/test/rules";
const TESTS = "packages/nodeyard/test/launcher";

/** Making, giving, freeing and deleting nodes. */
export const NODES: readonly Mutant[] = [
  ...faultsIn(`${LAUNCHER}/nodes/create-node.ts`, [
    {
      name: "tenant-not-recorded",
      breaks: "rule 3",
      find: "tenantName: request.record.tenantName,",
      put: "tenantName: null,",
    },
    {
      name: "resources-not-recorded",
      breaks: "rule 3",
      find: "resources: { ...planned.need },",
      put: "resources: null,",
    },
    {
      name: "zone-not-recorded",
      breaks: "rule 2",
      find: "az: planned.zone,",
      put: "az: null,",
    },
    {
      name: "record-of-a-lost-reply-is-made-again",
      breaks: "protocol: lost replies",
      find: "if (data?.nodeyard?.token === token) return id;",
      put: "void token;",
      tests: [`${RULES}/protocol-building`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/nodes/attempt.ts`, [
    {
      name: "ready-without-address",
      breaks: "promise: a ready node has an address and its host keys",
      find: "      hostKeys,\n",
      put: "      interfaceIp: null,\n      hostKeys,\n",
      tests: [`${TESTS}/life-of-a-node`],
    },
    {
      name: "ready-without-host-keys",
      breaks: "promise: a ready node has an address and its host keys",
      find: "      hostKeys,\n",
      put: "      hostKeys: hostKeys.slice(0, 0),\n",
      tests: [`${TESTS}/life-of-a-node`, `${TESTS}/life`],
    },
    {
      name: "ready-without-a-scan",
      breaks: "promise: a ready node answers",
      find: "if (!label.hostKeyChecking) return [];",
      put: "if (label.hostKeyChecking || !label.hostKeyChecking) return [];",
      tests: [`${TESTS}/scan`],
    },
    {
      name: "machine-id-not-stored",
      breaks: "decision: a step's result is stored before it goes on",
      find: "await node.write({ externalId });",
      put: "void externalId;",
      tests: [`${RULES}/protocol-building`],
    },
    {
      name: "boots-an-image-of-its-last-try",
      breaks: "protocol: what boots is ready",
      find: "if (patch.imageId !== node.record.imageId) await node.write(patch);",
      put: "void patch;",
      tests: [`${TESTS}/canary`],
    },
    {
      name: "machines-without-our-tag",
      breaks: "rule 5",
      find: "tag: tagOf(context, node),",
      put: 'tag: { ...tagOf(context, node), installation: "" },',
      tests: [`${TESTS}/vanished`],
    },
    {
      name: "launch-timeout-never-comes",
      breaks: "rule 8",
      find: "using limit = deadline(context.clock, config.launchTimeoutMs, late, parent);",
      put: "using limit = deadline(context.clock, config.launchTimeoutMs * 1e6, late, parent);",
      tests: [`${RULES}/rule-08-deaf-drivers`, `${RULES}/rule-08-waits`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/nodes/launch.ts`, [
    {
      name: "next-try-beside-the-first",
      breaks: "rule 5",
      find: 'if (!(await cleared(context, launch, attempt, signal))) return give(node, "aborted", error);',
      put: "void cleared;",
      tests: [`${TESTS}/life-of-a-node`],
    },
    {
      name: "tries-for-ever",
      breaks: "rule 8",
      find: 'if (attempt >= config.launchAttempts || kind === "configuration")',
      put: 'if (kind === "configuration")',
      tests: [`${TESTS}/life-of-a-node`, `${TESTS}/life`],
    },
    {
      name: "quota-is-tried-again",
      breaks: "rule 8",
      find: 'if (REPLANNED.has(kind)) return give(node, "aborted", error);',
      put: "",
      tests: [`${TESTS}/limits`, `${TESTS}/life`],
    },
    {
      name: "quota-refusal-is-not-told",
      breaks: "rule 8",
      find: 'if (kind === "quota") context.quotaRefused(config.name);',
      put: "",
      tests: [`${TESTS}/limits`, `${TESTS}/over-launch`, `${TESTS}/quota-refresh`],
    },
    {
      name: "launches-under-a-lost-fence-count-as-failed",
      breaks: "rule 1",
      find: "if (error instanceof FenceLost || error instanceof ImageGone || signal.aborted) {",
      put: "if (error instanceof ImageGone || signal.aborted) {",
      tests: [`${RULES}/rule-01-effects`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/nodes/claim.ts`, [
    {
      name: "claims-what-is-taken",
      breaks: "rule 1",
      find: 'if (node.record.state !== "ready" || node.record.allocatedTo !== null) {',
      put: "if (false) {",
      tests: [`${TESTS}/several`, `${RULES}/rule-02-whole-nodesets`],
    },
    {
      name: "reused-node-keeps-its-tenant",
      breaks: "rule 3",
      find: "tenantName: record.tenantName, requestor: record.requestor });",
      put: "requestor: record.requestor });",
    },
    {
      name: "dead-hosts-are-given",
      breaks: "promise: a host answers when it is delivered",
      find: "if (probe.alive) return true;",
      put: "return true;",
      tests: [`${TESTS}/static-dead`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/nodes/node-lock.ts`, [
    {
      name: "who-is-promised-an-unreadable-node-is-declined",
      breaks: "rule 6",
      find: 'if (error instanceof RecordError) return "busy";',
      put: 'if (error instanceof RecordError && error.code.length === 0) return "busy";',
      tests: [`${RULES}/rule-06-unreadable`],
    },
    {
      name: "frees-what-is-promised",
      breaks: "rule 1",
      find: "const forgotten = allocatedTo !== null && (await isForgotten(context, allocatedTo));",
      put: "const forgotten = allocatedTo !== null && ((await isForgotten(context, allocatedTo)) || true);",
      tests: [`${TESTS}/stale-records`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/nodes/delete-node.ts`, [
    {
      name: "deletes-what-is-in-use",
      breaks: "rule 1",
      find: "const wanted = GOING.has(record.state) || stated;",
      put: "const wanted = GOING.has(record.state) || stated || record !== undefined;",
      tests: [`${TESTS}/deletions`, `${TESTS}/stale-records`],
    },
    {
      name: "deletes-what-was-given-meanwhile",
      breaks: "rule 1",
      find: '&& (record.state !== "ready" || record.allocatedTo === null);',
      put: ";",
      tests: [`${TESTS}/deletions`],
    },
    {
      name: "record-goes-before-its-machine",
      breaks: "rule 5",
      find: 'if (record.state !== "deleted" && record.provider !== null) await unmake(context, node, attempt, signal);',
      put: "void [unmake, attempt];",
    },
    {
      name: "machine-goes-before-its-record-says-so",
      breaks: "decision: intent before effect",
      find: 'if (record.state !== "deleting" && record.state !== "deleted") await node.write({ state: "deleting" });',
      put: 'if (record.state !== "deleting" && record.state !== "deleted") void expected;',
    },
    {
      name: "record-is-removed-whatever-it-says-by-now",
      breaks: "decision: every write to a held record is fenced",
      find: '{ op: "set", path: node.path, data, version: node.version },',
      put: '{ op: "set", path: node.path, data },',
      tests: [`${RULES}/protocol-fences`],
    },
    {
      name: "late-contenders-keep-a-record",
      breaks: "rule 5",
      find: "if (round >= CLEAR_ROUNDS || !(notEmpty ||",
      put: "if (round >= CLEAR_ROUNDS || !((notEmpty && round < 0) ||",
      tests: [`${RULES}/protocol-fences`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/nodes/remove-machine.ts`, [
    {
      name: "removes-without-a-look-at-the-lock",
      breaks: "rule 1",
      find: "before: () => beforeEffect(context, node.held),",
      put: "before: async () => void [beforeEffect],",
      tests: [`${RULES}/rule-01-effects`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/nodes/deletions.ts`, [
    {
      name: "failed-deletions-are-not-tried-again",
      breaks: "rule 5",
      find: 'if (outcome.result === "failed") return signal.aborted ? 0 : this.#failed(node, outcome.error);',
      put: 'if (outcome.result === "failed") return signal.aborted ? 0 : (await this.#failed(node, outcome.error)) + 1e9;',
      tests: [`${TESTS}/deletions`],
    },
    {
      name: "marks-outlive-their-nodes",
      breaks: "rule 5",
      find: "this.#tries.end(node);\n    await this.#unmark(node);\n    return undefined;",
      put: "this.#tries.end(node);\n    return undefined;",
      tests: [`${TESTS}/deletions`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/nodes/node-lock.ts`, [
    {
      name: "takes-out-what-is-taken",
      breaks: "rule 1",
      find: 'if (state !== "ready" || allocatedTo !== null) return context.fence.release(node.held);',
      put: 'if (state !== "ready" && state !== "in-use") return context.fence.release(node.held);\n  void allocatedTo;',
      tests: [`${TESTS}/static`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/tree-leftovers.ts`, [
    {
      name: "ghosts-with-data-go",
      breaks: "rule 6",
      find: '{ op: "check", path: paths.node(id), version: 0 },',
      put: "",
      tests: [`${RULES}/rule-06-records`],
    },
  ]),
];
