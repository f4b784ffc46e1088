import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Caller,
  DataTree,
  type Identity,
  TRUSTED,
  type TreeOp,
  type ZnodeRow,
} from "../../src/engine/index.ts";

const PATHS = ["/a", "/b", "/a/c", "/a/d", "/a/c/e", "/b/f", "/"];
const path = fc.constantFrom(...PATHS);
const version = fc.constantFrom(undefined, undefined, 0, 1);
const data = fc.option(fc.uint8Array({ maxLength: 3 }));
const ME: Identity = { scheme: "digest", id: "me:hash" };
const acl = fc.constantFrom(
  [{ perms: 31, scheme: "world", id: "anyone" }],
  [{ perms: 31, ...ME }],
  [
    { perms: 1, scheme: "world", id: "anyone" },
    { perms: 31, scheme: "auth", id: "" },
  ],
);
/** Most operations are of somebody who may do everything, or most of them would be refused. */
const caller = fc.constantFrom<Caller>(
  TRUSTED,
  TRUSTED,
  { trusted: false, identities: [ME] },
  { trusted: false, identities: [] },
);

const op: fc.Arbitrary<TreeOp> = fc.oneof(
  fc.record({
    op: fc.constant("create" as const),
    path,
    data,
    ephemeral: fc.boolean(),
    sequential: fc.constantFrom(false, false, true),
  }),
  fc.record({ op: fc.constant("create" as const), path, data, acl }),
  fc.record({ op: fc.constant("setAcl" as const), path, acl }),
  fc.record({ op: fc.constant("set" as const), path, data }),
  fc
    .tuple(path, version)
    .map(([at, v]): TreeOp => ({ op: "delete", path: at, ...(v !== undefined && { version: v }) })),
  fc
    .tuple(path, version)
    .map(([at, v]): TreeOp => ({ op: "check", path: at, ...(v !== undefined && { version: v }) })),
);

/** Everything that anybody can learn of a tree. */
function pictureOf(tree: DataTree): unknown {
  const picture: unknown[] = [tree.zxid, [...tree.ephemerals(1n)].sort(), [...tree.ephemerals(2n)].sort()];
  const walk = (at: string): void => {
    picture.push([at, tree.stat(at), tree.content(at), tree.acl(at), tree.row(at)]);
    for (const name of (tree.children(at) ?? []).sort()) walk(at === "/" ? `/${name}` : `${at}/${name}`);
  };
  walk("/");
  return picture;
}

const commits = fc.array(
  fc.tuple(fc.array(op, { minLength: 1, maxLength: 5 }), fc.constantFrom(1n, 2n), caller),
  { maxLength: 30 },
);

test("a refused commit leaves no trace, and names the first operation that refuses", () => {
  fc.assert(
    fc.property(commits, (script) => {
      const tree = new DataTree();
      for (const [ops, session, who] of script) {
        const before = pictureOf(tree);
        const applied = tree.apply(ops, session, 5, who);
        if (applied.error === undefined) continue;
        expect(pictureOf(tree)).toEqual(before);
        const upTo = ops.slice(0, applied.error.index);
        if (upTo.length > 0) expect(tree.apply(upTo, session, 5, who).error).toBeUndefined();
      }
    }),
    { numRuns: 300 },
  );
});

test("a tree that is kept by its touched rows alone comes back the same", () => {
  fc.assert(
    fc.property(commits, (script) => {
      const tree = new DataTree();
      const rows = new Map<string, ZnodeRow>();
      const keep = (touched: Iterable<string>) => {
        for (const at of touched) {
          const row = tree.row(at);
          if (row === undefined) rows.delete(at);
          else rows.set(at, row);
        }
      };
      for (const [ops, session, who] of script) {
        const applied = tree.apply(ops, session, 5, who);
        if (applied.error === undefined) keep(applied.touched);
      }
      keep(tree.endSession(2n).touched);
      const again = new DataTree();
      again.load([...rows.values()].reverse(), tree.zxid);
      expect(pictureOf(again)).toEqual(pictureOf(tree));
      expect(tree.ephemerals(2n)).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test.each(["", "a", "/a/", "//a", "/a//b", "/a/.", "/../a", "/a\u0000", "/a\u0085", "/\ud800", "/\uffff"])(
  "%j is not a path",
  (bad) => {
    for (const op of ["create", "set", "setAcl", "delete", "check"] as const) {
      const asked = { op, path: bad, data: new Uint8Array(0), acl: [{ perms: 31, ...ME }] };
      const { error } = new DataTree().apply([asked], 1n, 0);
      // A create asks for the parent first, as ZooKeeper does.
      const codes = op === "create" ? /bad_arguments|no_node/ : /bad_arguments/;
      expect(error?.reason.code).toMatch(codes);
    }
  },
);

test("a sequential name may be the digits alone, at the root too", () => {
  const tree = new DataTree();
  const made = tree.apply([{ op: "create", path: "/", sequential: true }], 1n, 0);
  expect(made.error).toBeUndefined();
  expect(tree.children("/")).toEqual(["0000000000"]);
});
