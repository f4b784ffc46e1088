import { afterAll, beforeAll } from "vitest";
import { sweep } from "./sweep.ts";
import { turn } from "./turn.ts";

let giveBack: (() => void) | undefined;

beforeAll(async () => {
  giveBack = await turn();
  clean("an earlier test file");
});

afterAll(() => {
  clean("this test file");
  giveBack?.();
});

function clean(by: string): void {
  if (process.getuid!() !== 0) return;
  const left = sweep();
  if (left.length > 0) console.error(`left by ${by}, and removed:\n${left.join("\n")}`);
}
