import { afterAll, beforeAll } from "vitest";
import { turn } from "./turn.ts";

let giveBack: (() => void) | undefined;

beforeAll(async () => {
  giveBack = await turn();
});

afterAll(() => giveBack?.());
