import { faultsIn, type Mutant } from "../mutant.ts";

const METASTATIC = "packages/nodeyard/src/launcher/metastatic";
const SCHEDULER = "packages/nodeyard/src/scheduler";
const TESTS = "packages/nodeyard/test/metastatic";

/** Slots on backing nodes. */
export const SLOTS: readonly Mutant[] = [
  ...faultsIn("packages/nodeyard/src/launcher/nodes/slots.ts", [
    {
      name: "slots-without-claims",
      breaks: "protocol: slots are claimed by a create",
      find: '      { op: "create", path: claimPath(place.backing, place.slot), data: encodeClaim(node.id) },\n',
      put: '      { op: "check", path: paths.node(node.id), version: node.version + encodeClaim(node.id).length * Number(claimPath(place.backing, 0) === "") },\n',
    },
    {
      name: "slots-on-a-backing-node-that-changed",
      breaks: "protocol: writes to a backing node check its version",
      find: '{ op: "check", path: paths.node(place.backing), version: place.version },',
      put: '{ op: "check", path: paths.node(place.backing) },',
      tests: [`${TESTS}/faults`, `${TESTS}/lost-claims`],
    },
    {
      name: "slot-freed-twice",
      breaks: "rule 1",
      find: "if (now?.backing !== place.backing || now.slot !== place.slot)",
      put: "if (now === undefined && place.slot < 0)",
      tests: [`${TESTS}/freeing`],
    },
    {
      name: "slots-of-others-are-freed",
      breaks: "rule 1",
      find: "const own = claims.filter((claim) => agrees(claim, place));",
      put: "const own = claims.filter((claim) => agrees(claim, place) || claim.node !== null);",
      tests: [`${TESTS}/freeing`],
    },
    {
      name: "slots-stay-taken",
      breaks: "rule 4",
      find: '...own.map(({ path }) => ({ op: "delete", path }) as const),',
      put: "",
      tests: [`${TESTS}/freeing`, `${TESTS}/life`],
    },
  ]),
  ...faultsIn("packages/nodeyard/src/view/slot-table.ts", [
    {
      name: "failed-backing-nodes-take-slots",
      breaks: "promise: a failed backing node takes no more",
      find: 'ended: data.failed ? "it has failed" : this.retired.has(id)',
      put: "ended: this.retired.has(id)",
      tests: [`${TESTS}/choose`],
    },
    {
      name: "retired-backing-nodes-take-slots",
      breaks: "promise: a retired backing node takes no more",
      find: 'this.retired.has(id) ? "it is retired" : undefined,',
      put: "undefined,",
      tests: [`${TESTS}/choose`],
    },
    {
      name: "unlocked-backing-nodes-take-slots",
      breaks: "rule 1",
      find: "open: entry.contenders.length > 0 && this.folders.has(id),",
      put: "open: this.folders.has(id),",
      tests: [`${TESTS}/choose`],
    },
  ]),
  ...faultsIn(`${SCHEDULER}/slot-index.ts`, [
    {
      name: "more-slots-than-there-are",
      breaks: "rule 9",
      find: "length: Math.min(slots, offered) }",
      put: "length: slots + 1 + offered * 0 }",
      tests: [`${TESTS}/choose`],
    },
    {
      name: "one-slot-is-promised-twice",
      breaks: "rule 1",
      find: "if (this.#promised.has(key)) continue;",
      put: "",
      tests: [`${TESTS}/choose`],
    },
  ]),
  ...faultsIn(`${SCHEDULER}/slots.ts`, [
    {
      name: "freed-slots-wake-nobody",
      breaks: "rule 4",
      find: "wakeLine(state, state.slots.set(id, after));",
      put: "state.slots.set(id, after);",
      tests: [`${TESTS}/life`],
    },
    {
      name: "lost-claims-stay-taken",
      breaks: "rule 4",
      find: "wakeLine(state, state.slots.lost(place));",
      put: "void place;",
      tests: [`${TESTS}/lost-claims`, `${TESTS}/crowd`],
    },
    {
      name: "newcomers-do-not-look-for-a-slot",
      breaks: "rule 4",
      find: 'state.waits.join("slot", line, state.slots.want(want, entry));\n  wakeLine(state, line);',
      put: 'state.waits.join("slot", line, state.slots.want(want, entry));',
      tests: [`${TESTS}/life`, "packages/nodeyard/test/scheduler/slots"],
    },
    {
      name: "promises-outlive-their-request",
      breaks: "rule 4",
      find: "for (const line of state.slots.forget(request)) wakeLine(state, line);",
      put: "",
      tests: ["packages/nodeyard/test/scheduler/slots"],
    },
    {
      name: "newcomers-overtake-those-who-wait-for-a-slot",
      breaks: "promise: order",
      find: 'if (settings === undefined || state.waits.line("slot", line).size > 0) return undefined;',
      put: "if (settings === undefined) return undefined;",
      tests: ["packages/nodeyard/test/scheduler/slots"],
    },
  ]),
  ...faultsIn(`${METASTATIC}/backing-lock.ts`, [
    {
      name: "backing-nodes-by-their-record-alone",
      breaks: "rule 1",
      find: "return found && Buffer.from(found.data).toString() === backingOwner(provider) ? path : undefined;",
      put: "return found && backingOwner(provider) ? path : undefined;",
      tests: [`${TESTS}/adopt`, `${TESTS}/python`],
    },
    {
      name: "former-owners-give-backing-nodes-back",
      breaks: "rule 1",
      find: '{ op: "delete", path: contender },\n    fence,\n',
      put: '{ op: "delete", path: contender },\n',
      tests: ["packages/nodeyard/test/rules/protocol-fences"],
    },
    {
      name: "backing-nodes-go-with-their-folder-left",
      breaks: "rule 5",
      find: "...folderEnd(context, id),\n",
      put: "",
      tests: [`${TESTS}/life`],
    },
  ]),
  ...faultsIn(`${METASTATIC}/plan.ts`, [
    {
      name: "backing-nodes-go-while-they-are-used",
      breaks: "rule 1",
      find: "if (!slots.isEmpty(id)) {",
      put: 'if (!slots.isEmpty(id) && id === "") {',
      tests: [`${TESTS}/life`],
    },
    {
      name: "empty-backing-nodes-stay",
      breaks: "rule 5",
      find: 'draft.actions.push({ type: "release", backing, why: "it is empty and grace-time is over" });',
      put: "void backing;",
      tests: [`${TESTS}/life`],
    },
    {
      name: "no-grace-time",
      breaks: "promise: grace-time",
      find: "facts.lastUsed(id) + settings!.graceMs,",
      put: "facts.lastUsed(id),",
      tests: [`${TESTS}/life`],
    },
    {
      name: "nobody-asks-for-backing-nodes",
      breaks: "rule 4",
      find: 'draft.actions.push({ type: "ask", label, count });',
      put: "void count;",
      tests: [`${TESTS}/life`],
    },
    {
      name: "backing-nodes-on-the-way-do-not-count",
      breaks: "rule 3",
      find: "const coming = asked.length * settings.slots;",
      put: "const coming = 0;",
      tests: [`${TESTS}/crowd`, `${TESTS}/life`],
    },
  ]),
];
