import { Broken } from "./broken.ts";
import type { Change } from "./replay.ts";
import { isLauncher, type Rule, stateOf } from "./rule.ts";

/** Attributes of every ready record of a label or provider; a function checks a value. */
export type ExpectedFields = Readonly<Record<string, unknown>>;

/** Promise to the client: a ready node can be used, and is as the configuration says. */
export class Usable implements Rule {
  readonly #expected: ReadonlyMap<string, ExpectedFields>;

  /** By label. */
  constructor(expected: ReadonlyMap<string, ExpectedFields> = new Map()) {
    this.#expected = expected;
  }

  onNode({ id, after, write }: Change): void {
    if (stateOf(after) !== "ready" || !isLauncher(write.client)) return;
    const { data } = after!;
    // Made by a Python-like launcher: ours only gives it away.
    if (data.provider === "py") return;
    for (const label of (data.type ?? []) as string[])
      for (const [field, wanted] of Object.entries(this.#expected.get(label) ?? {})) {
        const says = data[field];
        const right =
          typeof wanted === "function" ? wanted(says) : JSON.stringify(says) === JSON.stringify(wanted);
        if (!right)
          throw new Broken(
            "a ready node can be used",
            write,
            `${id} (${label}): ${field} is ${JSON.stringify(says)}`,
          );
      }
  }
}
