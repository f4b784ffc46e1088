import type { Tree } from "../contract.ts";
import { commits } from "./commits.ts";
import { feeds } from "./feeds.ts";
import { type Context, type Runner, type Target, until } from "./kit.ts";
import { operations } from "./operations.ts";
import { sessions } from "./sessions.ts";

export { Follower, type Runner, type Target } from "./kit.ts";

const START_LIMIT_MS = 180_000;

/**
 * The contract of `Tree` as a test suite, the same for every store. `open` is called once. Every test has its own sessions
 * and its own path in the tree. `features` lists the faults that the target can cause.
 */
export function treeConformance(
  name: string,
  run: Runner,
  open: () => Promise<Target>,
  features: readonly ("disconnect" | "expire")[] = [],
): void {
  run.describe(name, () => {
    let target: Target | undefined;
    let places = 0;
    run.beforeAll(async () => {
      target = await open();
    }, START_LIMIT_MS);
    run.afterAll(async () => target?.stop(), START_LIMIT_MS);

    const check: Context["check"] = (title, body) =>
      run.test(title, async () => {
        const present = target as Target;
        const open: Tree[] = [];
        const connect = async () => {
          const tree = await present.connect();
          open.push(tree);
          return tree;
        };
        try {
          const tree = await connect();
          const { path: root } = await tree.create(`/conformance-${++places}`);
          const patience = (what: string, holds: () => boolean | Promise<boolean>) =>
            until(present.clock, what, holds);
          await body({ target: present, tree, root, other: connect, until: patience });
        } finally {
          await Promise.all(open.map((tree) => tree.close()));
        }
      });
    const context: Context = { run, check, has: (feature) => features.includes(feature) };
    run.describe("operations", () => operations(context));
    run.describe("commits", () => commits(context));
    run.describe("sessions", () => sessions(context));
    run.describe("feeds", () => feeds(context));
  });
}
