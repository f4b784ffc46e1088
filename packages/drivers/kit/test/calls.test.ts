import { expect, test } from "vitest";
import { Calls, DriverError } from "../src/index.ts";

const { signal } = new AbortController();
const never = (own: AbortSignal) =>
  new Promise<never>((_, reject) => own.addEventListener("abort", () => reject(new Error("cut off"))));
const mapped = (error: unknown, place: string) =>
  new DriverError("capacity", `${place}: ${(error as Error).message}`, { cause: error });

test("an error is mapped, and says which provider's call it was", async () => {
  const failing = new Calls("lab", mapped).run("list", signal, async () => {
    throw new Error("full");
  });
  await expect(failing).rejects.toMatchObject({ kind: "capacity", message: "lab: list: full" });
  const plain = new Calls("lab").run("list", signal, async () => {
    throw new TypeError("x is not a function");
  });
  await expect(plain).rejects.toMatchObject({ kind: "fatal", message: "lab: list: x is not a function" });
});

test("a call that was given up ends with its caller's reason, not with what it made of it", async () => {
  const caller = new AbortController();
  const call = new Calls("lab", mapped).run("list", caller.signal, never);
  const reason = new DriverError("timeout", "too late");
  caller.abort(reason);
  await expect(call).rejects.toBe(reason);
  await expect(new Calls("lab").run("list", caller.signal, async () => 1)).rejects.toBe(reason);
});

test("closing ends what is under way, steps too, and what comes afterwards", async () => {
  const calls = new Calls("lab", mapped);
  const running = calls.run("list", signal, never);
  const steps = calls.steps("create", { signal, externalId: null }, async function* (context) {
    yield { step: "wait", deadlineMs: 1 };
    await never(context.signal);
  });
  await steps.next();
  const waiting = steps.next();
  calls.close();
  expect(calls.closed.aborted).toBe(true);
  for (const end of [running, waiting, calls.run("list", signal, async () => 1)])
    await expect(end).rejects.toMatchObject({ kind: "transient", message: "provider lab is closed" });
});

test("a caller's signal keeps nothing of the calls that have ended", async () => {
  const added: string[] = [];
  const caller = new AbortController().signal;
  const { addEventListener, removeEventListener } = caller;
  caller.addEventListener = (...words: Parameters<typeof addEventListener>) => {
    added.push(words[0]);
    return addEventListener.apply(caller, words);
  };
  caller.removeEventListener = (...words: Parameters<typeof removeEventListener>) => {
    added.pop();
    return removeEventListener.apply(caller, words);
  };
  const calls = new Calls("lab");
  for (let call = 0; call < 3; call++) await calls.run("list", caller, async () => 1);
  expect(added).toEqual([]);
});
