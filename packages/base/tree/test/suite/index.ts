import { afterAll, beforeAll, describe, test } from "vitest";
import type { Tree } from "../../src/contract.ts";
import { commits } from "./commits.ts";
import { feeds } from "./feeds.ts";
import { type Context, type Target, until } from "./kit.ts";
import { locks } from "./locks.ts";
import { operations } from "./operations.ts";
import { sessions } from "./sessions.ts";

export { Follower, type Target } from "./kit.ts";

/**
 * The contract of `Tree` as a test suite, the same for every store. `open` is called once. Every test has its own sessions
 * and its own path in the tree. `features` lists the faults that the target can cause.
 */
export function treeConformance(
  name: string,
  open: () => Promise<Target>,
  features: readonly ("disconnect" | "expire")[] = [],
): void {
  describe(name, () => {
    let target: Target | undefined;
    let places = 0;
    beforeAll(async () => {
      target = await open();
    });
    afterAll(async () => target?.stop());

    const check: Context["check"] = (title, body) =>
      test(title, async () => {
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
    const context: Context = { check, has: (feature) => features.includes(feature) };
    describe("operations", () => operations(context));
    describe("commits", () => commits(context));
    describe("sessions", () => sessions(context));
    describe("feeds", () => feeds(context));
    describe("locks", () => locks(context));
  });
}
