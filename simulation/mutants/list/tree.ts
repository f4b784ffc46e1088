import { faultsIn, type Mutant } from "../mutant.ts";

const TREE = "packages/tree/src";
const CACHE = "packages/zookeeper/src/recipes/tree-cache";
const RULES = "packages/nodeyard/test/rules";

/** The feed of the tree, our own writes, and the view. */
export const TREE_FAULTS: readonly Mutant[] = [
  ...faultsIn(`${TREE}/remote/remote-feed.ts`, [
    {
      name: "events-beside-our-own-writes",
      breaks: "protocol: own writes",
      find: 'if (!this.#own.inFlight(path, type === "created")) return false;',
      put: "void type;\n    if (path !== undefined) return false;",
      tests: [`${RULES}/protocol-own-writes`, "packages/tree/test/feed/remote-feed"],
    },
    {
      name: "parked-events-are-lost",
      breaks: "protocol: own writes",
      find: "this.#parked.delete(path);\n      this.dirty(path);",
      put: "this.#parked.delete(path);",
      tests: [`${RULES}/protocol-own-writes`, "packages/tree/test/feed/remote-feed"],
    },
    {
      name: "unknown-outcomes-are-not-read",
      breaks: "protocol: own writes",
      find: 'else if (error?.outcome === "unknown" && !(op.op === "create" && op.sequential)) {',
      put: 'else if (error?.outcome === "unknown" && this.ended) {',
      tests: [`${RULES}/protocol-own-writes`, "packages/tree/test/feed/remote-feed"],
    },
    {
      name: "own-replies-change-nothing",
      breaks: "protocol: own writes",
      find: "        this.#apply(path, op, result);\n",
      put: "",
      tests: [`packages/tree/test/memory/conformance`],
    },
  ]),
  ...faultsIn(`${CACHE}/follower.ts`, [
    {
      name: "no-gap-after-a-broken-connection",
      breaks: "protocol: the feed of a tree",
      find: 'else if (session.state !== "connected") this.#gap();',
      put: "",
      tests: ["packages/tree/test/feed/remote-feed"],
    },
  ]),
  ...faultsIn(`${CACHE}/reported-state.ts`, [
    {
      name: "versions-go-back",
      breaks: "protocol: the feed of a tree",
      find: "if (!isNewer(stat, known)) return;",
      put: "",
      tests: ["packages/tree/test/feed/remote-feed", `packages/tree/test/memory/conformance`],
    },
    {
      name: "what-went-in-a-gap-stays",
      breaks: "protocol: the feed of a tree",
      find: "if (known.walk !== this.#walk) this.remove(path);",
      put: "void [path, known];",
      tests: [`packages/tree/test/memory/conformance`],
    },
  ]),
  ...faultsIn(`${TREE}/remote/own-writes.ts`, [
    {
      name: "events-wait-for-later-writes",
      breaks: "protocol: own writes",
      find: "return numbers !== undefined && numbers[0]! <= upTo;",
      put: "return numbers !== undefined && (numbers[0]! <= upTo || true);",
      tests: [`${RULES}/protocol-own-writes`, "packages/tree/test/feed/remote-feed"],
    },
  ]),
  ...faultsIn("packages/nodeyard/src/view/view.ts", [
    {
      name: "the-view-is-never-compared",
      breaks: "protocol: resync",
      find: "this.#scheduleResync();\n  }",
      put: "void this.#scheduleResync;\n  }",
      tests: ["simulation/lost-event"],
    },
    {
      name: "one-bad-record-stops-the-view",
      breaks: "rule 6",
      find: "return this.#keepUnread(place, change, code, messageOf(error));",
      put: "this.#keepUnread(place, change, code, messageOf(error));\n      throw error;",
      tests: [`${RULES}/rule-06-records`],
    },
    {
      name: "half-a-view-is-whole",
      breaks: "rule 5",
      find: "return this.#open.size === 0;",
      put: "return this.#open.size < ROOTS.length;",
      tests: ["packages/nodeyard/test/view/view"],
    },
  ]),
  ...faultsIn("packages/nodeyard/src/coordination/membership.ts", [
    {
      name: "serves-before-it-is-registered",
      breaks: "protocol: components",
      find: "    this.#registered = true;\n    this.#on.renewed();",
      put: "    this.#on.renewed();",
      tests: [`${RULES}/protocol-components`],
    },
    {
      name: "a-lost-session-is-not-told",
      breaks: "rule 1",
      find: "this.#registered = false;\n      this.#on.lost?.();",
      put: "this.#registered = false;",
      tests: [`${RULES}/protocol-components`, `${RULES}/rule-01-effects`],
    },
  ]),
];
