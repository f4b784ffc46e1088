import { faultsIn, type Mutant } from "../mutant.ts";

const COORDINATION = "packages/nodeyard/src/coordination";
const RULES = "packages/nodeyard/test/rules";

/** Fenced writes, trusted locks, elections and registration. */
export const FENCES: readonly Mutant[] = [
  ...faultsIn(`${COORDINATION}/held-record.ts`, [
    {
      name: "no-contender-check",
      breaks: "decision: every write to a held record is fenced",
      find: '(set) => [{ op: "check", path: this.held.contender }, set],',
      put: "(set) => [set],",
      tests: [`${RULES}/protocol-fenced-writes`],
    },
    {
      name: "no-version-check",
      breaks: "decision: every write to a held record is fenced",
      find: "data, version: this.#version });",
      put: "data });",
      tests: [`${RULES}/protocol-fenced-writes`],
    },
    {
      name: "any-ground-is-the-same",
      breaks:
        "decision: a version that moved is read again, and given up when more than others' fields changed",
      find: "if (!this.#kind.sameGround(this.#record, theirs))",
      put: "if (false)",
      tests: [`${RULES}/protocol-fenced-writes`],
    },
    {
      name: "lost-reply-means-done",
      breaks: "protocol: lost replies",
      find: "if (found.stat.version !== this.#version) this.#adopt(found.data, found.stat.version);",
      put: "if (found.stat.version === this.#version) return true; this.#adopt(found.data, found.stat.version);",
      tests: [`${RULES}/protocol-lost-replies`],
    },
    {
      name: "lost-reply-means-not-done",
      breaks: "protocol: lost replies",
      find: "if (!left && sameBytes(found.data, data) && found.stat.version > this.#version) {",
      put: "if (false) {",
      tests: [`${RULES}/protocol-lost-replies`, `${RULES}/protocol-fenced-writes`],
    },
    {
      name: "no-sync-after-a-lost-reply",
      breaks: "protocol: lost replies",
      find: "// The connection may be to another server now, which is behind.\n      await this.#tree.sync(this.path);",
      put: "",
      tests: ["packages/nodeyard/test/launcher/lagging-server", "packages/tree/test/lock/lock"],
    },
    {
      name: "lost-reply-of-an-unlock",
      breaks: "protocol: lost replies",
      find: "const left = unlocks && (await this.#tree.stat(contender)) !== undefined;",
      put: "const left = false;",
      tests: [`${RULES}/protocol-lost-replies`, `${RULES}/protocol-fenced-writes`],
    },
    {
      name: "merges-for-ever",
      breaks: "rule 8",
      find: "|| merges >= MERGE_BUDGET",
      put: "",
      tests: [`${RULES}/protocol-fenced-writes`],
    },
  ]),
  ...faultsIn(`${COORDINATION}/fence.ts`, [
    {
      name: "effects-under-lost-trust",
      breaks: "rule 1",
      find: "return this.#tree.session().epoch === held.epoch && this.sessionTrusted();",
      put: "return this.#tree.session().epoch === held.epoch;",
      tests: [`${RULES}/rule-01-trust`, `${RULES}/rule-01-effects`],
    },
    {
      name: "locks-of-a-former-session",
      breaks: "rule 1",
      find: "return this.#tree.session().epoch === held.epoch && this.sessionTrusted();",
      put: "return this.sessionTrusted();",
      tests: [`${RULES}/rule-01-trust`, `${RULES}/rule-01-effects`],
    },
    {
      name: "suspension-goes-unnoticed",
      breaks: "rule 1",
      find: "if (Math.abs(drift - this.#wallMinusMono) > SUSPECT_MS) this.#distrusted = session.trustedUntil;",
      put: "",
      tests: [`${RULES}/rule-01-trust`],
    },
    {
      name: "trusted-for-longer-than-the-session",
      breaks: "rule 1",
      find: "mono < session.trustedUntil",
      put: "mono < session.trustedUntil + 60_000",
      tests: [`${RULES}/rule-01-trust`],
    },
  ]),
  ...faultsIn("packages/zookeeper/src/recipes/line.ts", [
    {
      name: "lock-without-looking",
      breaks: "rule 1",
      find: "return index < 0 ? ABSENT : line[index - 1];",
      put: "return index < 0 ? ABSENT : undefined;",
    },
    {
      name: "busy-leaves-its-contender",
      breaks: "protocol: locks",
      find: "await withdraw(client, entry, place, call);\n          return undefined;",
      put: "return undefined;",
    },
    {
      name: "lost-contender-stays",
      breaks: "protocol: lost replies",
      find: "const gone = withdraw(client, entry, place, {});",
      put: "const gone = Promise.resolve();",
      tests: [`${RULES}/protocol-locks`],
    },
    {
      name: "lost-release-stays",
      breaks: "protocol: lost replies",
      find: "if (attempt >= ATTEMPTS && (durable === true || !isLost(error))) throw error;\n    }\n  }\n}\n\nfunction isCurrent",
      put: "return;\n    }\n  }\n}\n\nfunction isCurrent",
      tests: [`${RULES}/protocol-locks`],
    },
    {
      name: "contenders-are-given-up-while-their-session-lives",
      breaks: "rule 4",
      find: "if (attempt >= ATTEMPTS && (durable === true || !isLost(error))) throw error;",
      put: "if (attempt >= ATTEMPTS) throw error;",
      tests: ["packages/tree/test/lock/lock"],
    },
    {
      name: "lost-contender-is-looked-for-on-a-server-behind",
      breaks: "protocol: lost replies",
      find: "await client.sync(parent, call);",
      put: "",
      tests: ["packages/nodeyard/test/launcher/lagging-server", "packages/tree/test/lock/lock"],
    },
  ]),
  ...faultsIn(`${COORDINATION}/effects.ts`, [
    {
      name: "acts-on-half-a-view",
      breaks: "rule 1",
      find: 'return tree.session().state === "connected" && view.complete && fence.sessionTrusted();',
      put: 'return tree.session().state === "connected" && fence.sessionTrusted();',
      tests: [`${RULES}/rule-01-effects`],
    },
    {
      name: "no-look-before-an-effect",
      breaks: "rule 1",
      find: "if (!mayAct(parts)) await whole(parts, held);\n  parts.fence.demand(held);",
      put: "void [parts, held, whole];",
      tests: [`${RULES}/rule-01-effects`],
    },
    {
      name: "waits-for-a-whole-tree-for-ever",
      breaks: "rule 8",
      find: "const WHOLE_MS = 60_000;",
      put: "const WHOLE_MS = 600_000_000;",
      tests: [`${RULES}/rule-01-effects`, `${RULES}/rule-08-silent-tree`],
    },
  ]),
  ...faultsIn("packages/driver/src/run-steps.ts", [
    {
      name: "only-the-first-step-is-guarded",
      breaks: "rule 1",
      find: "await options.before?.();",
      put: 'if (current === "start") await options.before?.();',
      tests: [`${RULES}/rule-01-effects`],
    },
    {
      name: "a-step-begins-after-its-run-was-abandoned",
      breaks: "rule 1",
      find: "    run.signal.throwIfAborted();\n    return steps.next();",
      put: "    return steps.next();",
      tests: [`${RULES}/rule-01-effects`],
    },
  ]),
  ...faultsIn(`${COORDINATION}/election.ts`, [
    {
      name: "everybody-leads",
      breaks: "rule 1",
      find: "return holderOf([...this.#names, this.#own.name]) === this.#own.name;",
      put: "return true;",
    },
    {
      name: "leads-before-it-saw-the-line",
      breaks: "rule 1",
      find: "this.#syncedEpoch !== session.epoch ||",
      put: "",
      tests: [`${RULES}/rule-01-election`],
    },
    {
      name: "leads-under-lost-trust",
      breaks: "rule 1",
      find: "this.#syncedEpoch !== session.epoch ||\n      clock.monotonic() >= session.trustedUntil",
      put: "this.#syncedEpoch !== session.epoch ||\n      clock.monotonic() < 0",
      tests: [`${RULES}/rule-01-election`],
    },
    {
      name: "never-stands-again",
      breaks: "rule 4",
      find: "this.#own = undefined;\n          this.#controller.wake();",
      put: "this.#own = undefined;",
      tests: [`${RULES}/rule-01-election`],
    },
    {
      name: "stays-in-the-line-when-it-leaves",
      breaks: "rule 4",
      find: ".then(() => withdraw(lineOf(this.#context.tree), { ...this.#entry, doubtful: true }, undefined, {}))",
      put: ".then(() => void withdraw)",
      tests: ["packages/nodeyard/test/launcher/stopping"],
    },
  ]),
  ...faultsIn(`${COORDINATION}/registration.ts`, [
    {
      name: "registers-twice",
      breaks: "protocol: components",
      find: "const found = component.tried >= 0 ? await this.#find(component) : undefined;",
      put: "const found = component.tried >= Number.POSITIVE_INFINITY ? await this.#find(component) : undefined;",
      tests: [`${RULES}/protocol-components`],
    },
    {
      name: "does-not-register-again",
      breaks: "protocol: components",
      find: "if (component.epoch !== this.#handles.tree.session().epoch) await this.#create(component);",
      put: "",
      tests: [`${RULES}/protocol-components`],
    },
    {
      name: "pool-that-left-stays-registered",
      breaks: "protocol: components",
      find: ".then(() => retryInterrupted(this.#handles, () => this.#remove(component)))",
      put: ".then(() => void [this.#remove])",
      tests: [`${RULES}/protocol-components`],
    },
  ]),
];
