import { expect, test } from "vitest";
import { handMade, makes, sets } from "./hand-made.ts";

const path = (number: number, priority = "200") =>
  `/nodepool/requests/${priority}-${String(number).padStart(10, "0")}`;
const wants = (count: number, state = "requested") => ({ state, node_types: Array(count).fill("small") });

/** One request for several nodes, and then this many later ones, each for `count`, that are accepted first. */
function passed(times: number, count: number, priority?: string, dead?: string) {
  const { does } = handMade({ isDead: (client) => client !== undefined && client === dead });
  const register = { supported_labels: ["small"] };
  does(0, "launcher-0", makes("/nodepool/components/pool/p", register));
  does(1, "zuul", makes(path(1), wants(3)));
  const first = path(1).replace("requests/", "requests-lock/");
  does(1, "launcher-1", { op: "create", path: `${first}/l__lock__0000000000` });
  for (let number = 2; number < times + 2; number++) {
    does(number, "zuul", makes(path(number, priority), wants(count)));
    const lock = path(number, priority).replace("requests/", "requests-lock/");
    does(number, "launcher-0", { op: "create", path: `${lock}/l__lock__0000000000` });
    does(number, "launcher-0", sets(path(number, priority), wants(count, "pending")));
    const fulfilled = { ...wants(count, "fulfilled"), node_types: [], nodes: [] };
    does(number, "launcher-0", sets(path(number, priority), fulfilled));
  }
}

test("a waiting request is overtaken sometimes, but not again and again", () => {
  passed(6, 3);
  expect(() => passed(7, 3)).toThrow("no request is overtaken again and again");
  passed(20, 1);
  expect(() => passed(21, 1)).toThrow("no request is overtaken again and again");
});

test("requests of a higher priority overtake", () => {
  passed(30, 3, "100");
});

test("nobody overtakes a request whose lock a launcher has that is dead; only one that lives", () => {
  passed(30, 3, undefined, "launcher-1");
  expect(() => passed(7, 3, undefined, "launcher-2")).toThrow("no request is overtaken again and again");
});
