import * as original from "@nodeyard/client";
import { write } from "./writes.ts";

export * from "@nodeyard/client";

const WRITES: ReadonlySet<unknown> = new Set(["create_lease", "release_lease"]);

export const connect: typeof original.connect = (address, options) => {
  const client = original.connect(address, options);
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (name !== "call") return value.bind(target);
      return (id: string, ...args: unknown[]) => {
        const call = () => value.call(target, id, ...args);
        return WRITES.has(id) ? write(id, call) : call();
      };
    },
  });
};
