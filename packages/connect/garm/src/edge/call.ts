import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import type { GarmCall } from "../garm.ts";

/** The call as GARM makes it: by its environment and, for a new instance, stdin. */
export function garmCall(env: GarmCall["env"]): GarmCall {
  return { env, bootstrap: () => text(process.stdin), readFile: (path) => readFileSync(path, "utf8") };
}
