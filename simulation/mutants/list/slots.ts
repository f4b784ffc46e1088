import { faultsIn, type Mutant } from "../mutant.ts";

const METASTATIC = "packages/nodeyard/src/launcher/metastatic";
const TESTS = "packages/nodeyard/test/metastatic";

/** Slots on backing nodes. */
export const SLOTS: readonly Mutant[] = [
  ...faultsIn(`${METASTATIC}/slot-lock.ts`, [
    {
      name: "slots-without-claims",
      breaks: "protocol: slots are claimed by a create",
      find: '      { op: "create", path: claimPath(place.backing, place.slot), data: encodeClaim(node.id) },\n',
      put: '      { op: "check", path: paths.node(node.id), version: node.version + encodeClaim(node.id).length * Number(claimPath(place.backing, 0) === "") },\n',
    },
    {
      name: "slots-on-a-backing-node-that-changed",
      breaks: "protocol: writes to a backing node check its version",
      find: '{ op: "check", path: paths.node(place.backing), version: place.node.version },',
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
  ...faultsIn(`${METASTATIC}/choose.ts`, [
    {
      name: "failed-backing-nodes-take-slots",
      breaks: "promise: a failed backing node takes no more",
      find: 'if (backing.data.failed) return "it has failed";',
      put: "",
      tests: [`${TESTS}/choose`],
    },
    {
      name: "retired-backing-nodes-take-slots",
      breaks: "promise: a retired backing node takes no more",
      find: 'if (book.claims.retired.has(backing.id)) return "it is retired";',
      put: "",
      tests: [`${TESTS}/choose`],
    },
    {
      name: "more-slots-than-there-are",
      breaks: "rule 9",
      find: "return Math.min(data.slots, settings.slots);",
      put: "return data.slots + 1 + settings.slots * 0;",
      tests: [`${TESTS}/choose`],
    },
    {
      name: "unlocked-backing-nodes-take-slots",
      breaks: "rule 1",
      find: "contenders.length > 0 &&\n    book.claims.folders.has(backing.id) &&",
      put: "contenders.length >= 0 &&\n    book.claims.folders.has(backing.id) &&",
      tests: [`${TESTS}/choose`],
    },
  ]),
  ...faultsIn(`${METASTATIC}/slots.ts`, [
    {
      name: "freed-slots-wake-nobody",
      breaks: "rule 4",
      find: "this.#line.serve((label) => this.#choose(label));",
      put: "",
      tests: [`${TESTS}/life`],
    },
    {
      name: "lost-claims-stay-taken",
      breaks: "rule 4",
      find: "this.#taken.delete(claimPath(place.backing, place.slot));",
      put: "",
      tests: [`${TESTS}/lost-claims`, `${TESTS}/crowd`],
    },
    {
      name: "newcomers-do-not-look-for-a-slot",
      breaks: "rule 4",
      find: "this.wake();\n    return place;",
      put: "return place;",
      tests: [`${TESTS}/life`],
    },
  ]),
  ...faultsIn(`${METASTATIC}/backing-lock.ts`, [
    {
      name: "backing-nodes-by-their-record-alone",
      breaks: "rule 1",
      find: "return Buffer.from(data).toString() === backingOwner(provider) ? `${parent}/${first}` : undefined;",
      put: "return data.length >= 0 || backingOwner(provider) ? `${parent}/${first}` : undefined;",
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
      find: "...folderEnd(book, id),\n",
      put: "",
      tests: [`${TESTS}/life`],
    },
  ]),
  ...faultsIn(`${METASTATIC}/plan-backings.ts`, [
    {
      name: "backing-nodes-go-while-they-are-used",
      breaks: "rule 1",
      find: "if (!book.isEmpty(id)) {",
      put: 'if (!book.isEmpty(id) && id === "") {',
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
  ]),
  ...faultsIn(`${METASTATIC}/plan-requests.ts`, [
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
