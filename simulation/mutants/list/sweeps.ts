import { faultsIn, type Mutant } from "../mutant.ts";

const LAUNCHER = "packages/nodeyard/src/launcher";
const SCHEDULER = "packages/nodeyard/src/scheduler";
const RULES = "packages/nodeyard/test/rules";
const TESTS = "packages/nodeyard/test/launcher";

/** Sweeps, inventories, clocks and breakers. */
export const SWEEPS: readonly Mutant[] = [
  ...faultsIn("packages/driver/src/leaks.ts", [
    {
      name: "foreign-machines-go",
      breaks: "rule 5",
      find: "if (tag === null || tag.installation !== context.installation || tag.provider !== context.provider)",
      put: "if (tag === null || tag.provider !== context.provider)",
      tests: [`${RULES}/rule-05-leaks`],
    },
    {
      name: "one-sweep-is-enough",
      breaks: "rule 5",
      find: "if (context.previous.has(key)) remove.push(resource);",
      put: "remove.push(resource);",
      tests: [`${RULES}/rule-05-leaks`],
    },
    {
      name: "no-brake",
      breaks: "rule 5",
      find: "const braked = remove.length > Math.max(BRAKE_LEAST, ours * BRAKE_SHARE);",
      put: "const braked = remove.length > Math.max(BRAKE_LEAST, ours * BRAKE_SHARE) && ours < 0;",
      tests: [`${RULES}/rule-05-leaks`],
    },
    {
      name: "machines-of-live-nodes-go",
      breaks: "rule 5",
      find: "if (known?.has(tag.nodeId)) continue;",
      put: "if (known?.has(tag.nodeId) && ours < 2) continue;",
      tests: [`${RULES}/rule-05-leaks`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/providers/leaks.ts`, [
    {
      name: "leaks-stay",
      breaks: "rule 5",
      find: "for (const resource of sweep.remove) await this.#remove(resource, signal);",
      put: "void this.#remove;",
      tests: [`${RULES}/rule-05-leaks`],
    },
    {
      name: "sweeps-on-half-a-view",
      breaks: "rule 5",
      find: "if (!view.complete) return;\n",
      put: "void view;\n",
      tests: [`${RULES}/rule-05-leaks`],
    },
    {
      name: "vanished-machines-are-offered",
      breaks: "promise: a ready node has a machine",
      find: 'await takeOut(this.#context, id, "its machine is gone");',
      put: "void takeOut;",
      tests: [`${TESTS}/vanished`],
    },
    {
      name: "vanished-by-one-list",
      breaks: "rule 5",
      find: "if ((await this.#open.provider.find(tag, signal)) !== undefined) return;",
      put: "void tag;",
      tests: [`${TESTS}/vanished`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/providers/survey.ts`, [
    {
      name: "vanished-at-first-sight",
      breaks: "rule 5",
      find: "if (previous.has(key)) gone.push(entry);",
      put: "gone.push(entry);",
      tests: [`${TESTS}/vanished`],
    },
    {
      name: "vanished-though-newer-than-the-list",
      breaks: "rule 5",
      find: "|| (ready >= asked && ready <= asked + LISTED_MS)) continue;",
      put: "|| (ready > asked + LISTED_MS && asked < 0)) continue;",
      tests: [`${TESTS}/vanished`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/providers/inventory.ts`, [
    {
      name: "hosts-are-registered-by-all",
      breaks: "rule 1",
      find: "context.tree.commit([made, this.#election.check()] as const);",
      put: "context.tree.commit([made] as const);",
      tests: [`${TESTS}/static-lead`],
    },
    {
      name: "a-new-leader-registers-hosts-again",
      breaks: "rule 1",
      find: "if (term === undefined || term === this.#caughtUp) return term !== undefined;",
      put: "if (term !== this.#catchingUp || term === this.#caughtUp) return term !== undefined;",
      tests: [`${TESTS}/static-lead`],
    },
    {
      name: "hosts-that-answer-again-stay-away",
      breaks: "rule 4",
      find: "return retry === undefined || retry.at <= this.#context.clock.monotonic();",
      put: "return retry === undefined;",
      tests: [`${TESTS}/static-dead`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/providers/slots.ts`, [
    {
      name: "hosts-in-use-are-registered-again",
      breaks: "rule 1",
      find: 'new Set(["building", "deleting", "deleted"]);',
      put: 'new Set(["building", "deleting", "deleted", "in-use"]);',
      tests: [`${TESTS}/static`],
    },
    {
      name: "hosts-that-were-given-are-locked",
      breaks: "promise: a delivered node is unlocked",
      find: 'return record.state === "ready" && record.allocatedTo === null && contenders.length === 0;',
      put: 'return record.state === "ready" && contenders.length === 0;',
      tests: [`${TESTS}/static`],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/age-clock.ts`, [
    {
      name: "a-clock-that-is-set-while-a-launcher-starts-is-believed",
      breaks: "rule 8",
      find: "this.#doubt = Math.abs(jump) > JUMP_MS ? { off: 0, agreed: 0 } : undefined;",
      put: "this.#doubt = Math.abs(jump) > JUMP_MS * 1e6 ? { off: 0, agreed: 0 } : undefined;",
      tests: [`${RULES}/rule-08-ages`],
    },
    {
      name: "jumps-are-believed",
      breaks: "rule 8",
      find: "} else this.#doubt ??= { off: real - steady, agreed: 0 };",
      put: "} else this.#set(real);",
      tests: [`${RULES}/rule-08-ages`],
    },
    {
      name: "jumps-are-never-believed",
      breaks: "rule 8",
      find: "if (agreed < AGREE) return;",
      put: "if (agreed < AGREE || agreed >= AGREE) return;",
      tests: [`${RULES}/rule-08-ages`],
    },
    {
      name: "one-sweep-tells-the-time",
      breaks: "rule 8",
      find: "const AGREE = 3;",
      put: "const AGREE = 1;",
      tests: [`${RULES}/rule-08-ages`],
    },
  ]),
  ...faultsIn(`${SCHEDULER}/failure-rule.ts`, [
    {
      name: "breakers-never-open",
      breaks: "rule 8",
      find: "if (!overspent && !broken) return undefined;",
      put: "if (now > 0) return undefined;",
      tests: [`${TESTS}/breaker-rule`, `${TESTS}/breakers`],
    },
    {
      name: "quota-opens-breakers",
      breaks: "rule 8",
      find: 'const counted = failures.filter(({ kind }) => kind !== "quota");',
      put: "const counted = failures;",
      tests: [`${TESTS}/breaker-rule`],
    },
    {
      name: "failed-launches-have-no-budget",
      breaks: "rule 8",
      find: "const overspent = spent.level >= rule.failedPerHour;",
      put: "const overspent = spent.level >= rule.failedPerHour * 1e6;",
      tests: [`${TESTS}/breaker-rule`],
    },
    {
      name: "labels-have-no-budget",
      breaks: "rule 8",
      find: "return Math.max(0, Math.floor(rule.failedPerHour - levelOf(tally, now, rule)));",
      put: "return Math.max(1e9, Math.floor(rule.failedPerHour - levelOf(tally, now, rule)));",
      tests: [`${TESTS}/label-rule`, `${TESTS}/label-budget`],
    },
  ]),
  ...faultsIn(`${SCHEDULER}/launches.ts`, [
    {
      name: "launches-begin-in-a-torn-picture",
      breaks: "rule 8",
      find: 'if (!state.complete) return "wait";',
      put: "",
      tests: ["packages/nodeyard/test/scheduler/launches"],
    },
    {
      name: "places-of-launches-are-not-passed-on",
      breaks: "rule 4",
      find: "    serveLaunches(state, turn, label);\n  }\n}",
      put: "  }\n}",
      tests: ["packages/nodeyard/test/scheduler/launches", `${TESTS}/label-budget`],
    },
    {
      name: "closed-offerings-are-launched",
      breaks: "rule 8",
      find: "if (held !== undefined)\n    return refuse(",
      put: "if (held !== undefined && node === request)\n    return refuse(",
      tests: ["packages/nodeyard/test/scheduler/launches"],
    },
  ]),
  ...faultsIn(`${LAUNCHER}/failure-records.ts`, [
    {
      name: "tries-never-end",
      breaks: "rule 4",
      find: "if (this.#prober(key) === permit.request && (await this.#isOurs(key)))",
      put: "if (this.#prober(key) === permit.request && key === permit.request)",
      tests: [`${TESTS}/breakers`],
    },
  ]),
  ...faultsIn("packages/runtime/src/gate.ts", [
    {
      name: "turns-are-not-given-back",
      breaks: "rule 4",
      find: "      this.#next();\n",
      put: "",
      tests: ["packages/runtime/test/gate"],
    },
    {
      name: "no-bound-of-deletions-at-once",
      breaks: "rule 8",
      find: "if (this.#free > 0) this.#free--;",
      put: "if (this.#free > -1e9) this.#free--;",
      tests: ["packages/runtime/test/gate"],
    },
  ]),
];
