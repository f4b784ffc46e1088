import { expect } from "vitest";
import { bytes, type Context } from "./kit.ts";

/** Sessions: what is bound to them, how they end, what becomes of calls meanwhile. */
export function sessions({ check, has }: Context): void {
  check("what is ephemeral goes with its session, and only that", async ({ tree, root, other, until }) => {
    const second = await other();
    await second.create(`${root}/bound`, bytes(""), { ephemeral: true });
    await second.create(`${root}/stays`);
    expect((await second.stat(`${root}/bound`))?.ephemeralOwner).toBe(second.session().id);
    await expect(second.create(`${root}/bound/child`)).rejects.toMatchObject({
      code: "tree.no_children_for_ephemerals",
    });
    await second.close();
    // Another server may not yet have applied the creates either.
    await tree.sync(root);
    await until("the ephemeral znode is gone", async () => (await tree.stat(`${root}/bound`)) === undefined);
    expect(await tree.stat(`${root}/stays`)).toBeDefined();
  });

  check("sessions differ, and are trusted while connected", async ({ tree, other, target }) => {
    const second = await other();
    expect(second.session().id === tree.session().id).toBe(false);
    expect(tree.session()).toMatchObject({ state: "connected" });
    expect(tree.session().trustedUntil).toBeGreaterThan(target.clock.monotonic());
  });

  check("a closed tree refuses calls and says so", async ({ other, root }) => {
    const second = await other();
    const states: string[] = [];
    second.onSession(({ state }) => states.push(state));
    await second.close();
    await second.close();
    expect(states).toEqual(["closed"]);
    expect(second.session().state).toBe("closed");
    await expect(second.get(root)).rejects.toMatchObject({ code: "tree.closed" });
    await expect(second.commit([{ op: "check", path: root }])).rejects.toMatchObject({ code: "tree.closed" });
  });

  if (has("disconnect"))
    check("a session outlives its connection", async ({ tree, root, target, until }) => {
      const { id, epoch } = tree.session();
      await tree.create(`${root}/bound`, bytes(""), { ephemeral: true });
      await target.disconnect?.(tree);
      await until("connected again", () => tree.session().state === "connected");
      expect(tree.session()).toMatchObject({ id, epoch });
      expect(await tree.stat(`${root}/bound`)).toBeDefined();
    });

  if (has("expire"))
    check("an expired session is followed by a new one of the next epoch", async (place) => {
      const { tree, root, target, until } = place;
      const { id, epoch } = tree.session();
      const states: string[] = [];
      tree.onSession(({ state }) => states.push(state));
      await tree.create(`${root}/bound`, bytes(""), { ephemeral: true });
      await target.expire?.(tree);
      await until("a new session", () => tree.session().epoch === epoch + 1);
      await until("connected", () => tree.session().state === "connected");
      expect(tree.session().id === id).toBe(false);
      expect(states.includes("expired")).toBe(true);
      expect(await tree.stat(`${root}/bound`)).toBeUndefined();
    });

  if (has("expire"))
    check(
      "what waits for the connection when its session ends is not done in the next one",
      async (place) => {
        const { tree, root, target, until } = place;
        const { epoch } = tree.session();
        const late: Promise<unknown>[] = [];
        const create = async () => tree.create(`${root}/late`).catch((error: unknown) => error);
        tree.onSession(({ state }) => {
          // Not synchronously, where the call would fail together with the calls of the broken connection.
          if (state === "suspended") late.push(Promise.resolve().then(create));
        });
        await target.expire?.(tree);
        await until(
          "connected anew",
          () => tree.session().epoch > epoch && tree.session().state === "connected",
        );
        expect(late.length).toBeGreaterThan(0);
        expect(await late[0]).toMatchObject({ code: "tree.session_expired", outcome: "none" });
        expect(await tree.stat(`${root}/late`)).toBeUndefined();
      },
    );
}
