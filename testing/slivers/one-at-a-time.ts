import { afterAll, beforeAll } from "vitest";
import { sweep } from "./sweep.ts";
import { turn } from "./turn.ts";

let giveBack: (() => void) | undefined;

beforeAll(async () => {
  giveBack = await turn();
  if (process.getuid!() !== 0) return;
  const left = sweep();
  if (left.length > 0) console.error(`left by an earlier test file, and removed:\n${left.join("\n")}`);
});

afterAll(() => giveBack?.());
