import type { CreateOrder, Driver, Provider, Step, StepContext, Tag } from "@nodeyard/driver";
import * as original from "@nodeyard/driver-fake";
import { began, pass } from "./trigger.ts";

export * from "@nodeyard/driver-fake";

const genuine = original.fakeDriver as unknown as Driver;

export const fakeDriver: Driver = {
  ...genuine,
  open: async (config, context) => mined(await genuine.open(config, context)),
};

function mined(provider: Provider): Provider {
  return new Proxy(provider, {
    get(target, name) {
      if (name === "create")
        return (order: CreateOrder, step: StepContext) =>
          watched("create", "server", target.create(order, step));
      if (name === "remove")
        return (tag: Tag, step: StepContext) => watched("remove", "delete", target.remove(tag, step));
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Forwards the steps. The effect happens between the step named `at` and the next one. */
async function* watched<R>(
  kind: "create" | "remove",
  at: string,
  steps: AsyncGenerator<Step, R, void>,
): AsyncGenerator<Step, R, void> {
  const ended = began(kind);
  try {
    for (let doing = false; ; ) {
      if (doing) pass(`driver.${kind}`, "before");
      const next = steps.next();
      if (doing) setTimeout(() => pass(`driver.${kind}`, "during"), 10);
      const { value, done } = await next;
      if (doing) pass(`driver.${kind}`, "after");
      if (done) return value as R;
      doing = (value as Step).step === at;
      yield value as Step;
    }
  } finally {
    ended();
  }
}
