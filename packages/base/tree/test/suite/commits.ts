import { expect } from "vitest";
import { bytes, type Context, text } from "./kit.ts";

/** Commits: all or nothing, and their results. */
export function commits({ check }: Context): void {
  check("a commit does all of its ops, in order, and says what each did", async ({ tree, root }) => {
    await tree.create(`${root}/old`, bytes("1"));
    await tree.create(`${root}/gone`);
    const [checked, made, child, set, gone] = await tree.commit([
      { op: "check", path: `${root}/old`, version: 0 },
      { op: "create", path: `${root}/new`, data: bytes("2") },
      { op: "create", path: `${root}/new/c-`, ephemeral: true, sequential: true },
      { op: "set", path: `${root}/old`, data: bytes("3"), version: 0 },
      { op: "delete", path: `${root}/gone` },
    ]);
    expect(checked.op).toBe("check");
    expect(made.path).toBe(`${root}/new`);
    expect(child.path).toBe(`${root}/new/c-0000000000`);
    expect(set.stat.version).toBe(1);
    expect(gone.op).toBe("delete");
    expect(text((await tree.get(`${root}/old`)).data)).toBe("3");
    expect(await tree.stat(`${root}/gone`)).toBeUndefined();
    expect((await tree.stat(child.path))?.ephemeralOwner).toBe(tree.session().id);
  });

  check("a create's result shows what a read would", async ({ tree, root }) => {
    const [made] = await tree.commit([
      { op: "create", path: `${root}/a`, data: bytes("abc"), ephemeral: true },
      { op: "check", path: root },
    ]);
    const read = await tree.stat(`${root}/a`);
    const { ctime, mtime, ...rest } = made.stat;
    expect(read).toMatchObject(rest);
    // Servers leave the times of a commit's creates out, so they may be our own estimate of the tree's clock.
    expect(Math.abs(ctime - (read?.ctime ?? 0))).toBeLessThan(5_000);
    expect(mtime).toBe(ctime);
  });

  check("all ops of a commit share one transaction", async ({ tree, root }) => {
    const [a, b] = await tree.commit([
      { op: "create", path: `${root}/a` },
      { op: "create", path: `${root}/b` },
    ]);
    expect(a.stat.czxid).toBe(b.stat.czxid);
    expect((await tree.stat(`${root}/a`))?.czxid).toBe(a.stat.czxid);
  });

  check("a refused commit does nothing and names the op that refused", async ({ tree, root }) => {
    await tree.create(`${root}/a`, bytes("1"));
    const commit = tree.commit([
      { op: "create", path: `${root}/b` },
      { op: "set", path: `${root}/a`, data: bytes("2") },
      { op: "check", path: `${root}/a`, version: 5 },
      { op: "delete", path: `${root}/none` },
    ]);
    await expect(commit).rejects.toMatchObject({
      code: "tree.commit_failed",
      outcome: "none",
      index: 2,
      reason: { code: "tree.bad_version" },
    });
    expect(await tree.children(root)).toEqual(["a"]);
    expect(text((await tree.get(`${root}/a`)).data)).toBe("1");
  });

  check("each op may be the one that refuses, alone too", async ({ tree, root }) => {
    await tree.create(`${root}/a`);
    await tree.create(`${root}/a/b`);
    const cases = [
      [{ op: "create", path: `${root}/a` }, "tree.node_exists"],
      [{ op: "create", path: `${root}/none/b` }, "tree.no_node"],
      [{ op: "set", path: `${root}/none`, data: bytes("") }, "tree.no_node"],
      [{ op: "set", path: `${root}/a`, data: bytes(""), version: 9 }, "tree.bad_version"],
      [{ op: "delete", path: `${root}/a` }, "tree.not_empty"],
      [{ op: "check", path: `${root}/none` }, "tree.no_node"],
      [{ op: "check", path: `${root}/a`, version: 9 }, "tree.bad_version"],
      [{ op: "create", path: "no/slash" }, "tree.bad_arguments"],
    ] as const;
    for (const [op, reason] of cases) {
      const failure = (index: number) => ({ code: "tree.commit_failed", index, reason: { code: reason } });
      await expect(tree.commit([op]), `${op.op} ${op.path}`).rejects.toMatchObject(failure(0));
      const behind = tree.commit([{ op: "check", path: root }, op]);
      await expect(behind, `${op.op} ${op.path}`).rejects.toMatchObject(failure(1));
    }
  });

  check("a commit that only checks changes nothing; an empty one too", async ({ tree, root }) => {
    const before = await tree.stat(root);
    expect(await tree.commit([{ op: "check", path: root, version: 0 }])).toEqual([{ op: "check" }]);
    expect(await tree.commit([])).toEqual([]);
    expect(await tree.stat(root)).toEqual(before);
  });

  check("versions decide between writers: one of many wins", async ({ tree, root, other }) => {
    const second = await other();
    await tree.create(`${root}/a`, bytes("0"));
    await second.sync(root);
    const tries = [tree, second, tree, second].map((session, index) =>
      session
        .commit([{ op: "set", path: `${root}/a`, data: bytes(String(index)), version: 0 }])
        .then(() => true)
        .catch(() => false),
    );
    expect((await Promise.all(tries)).filter(Boolean).length).toBe(1);
    expect((await tree.stat(`${root}/a`))?.version).toBe(1);
  });
}
