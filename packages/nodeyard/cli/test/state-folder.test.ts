import { expect, test } from "vitest";
import { stateFolder } from "../src/session.ts";

const base = { option: undefined, env: {}, home: "/home/ann", isRoot: false };

test.each([
  ["--state", { ...base, option: "here", env: { NODEYARD_STATE: "/there" } }, "here"],
  ["the environment", { ...base, isRoot: true, env: { NODEYARD_STATE: "/there" } }, "/there"],
  ["root", { ...base, isRoot: true, env: { XDG_STATE_HOME: "/x", NODEYARD_STATE: "" } }, "/var/lib/nodeyard"],
  ["XDG", { ...base, env: { XDG_STATE_HOME: "/x" } }, "/x/nodeyard"],
  [
    "a relative XDG value is ignored",
    { ...base, env: { XDG_STATE_HOME: "x" } },
    "/home/ann/.local/state/nodeyard",
  ],
  ["home", base, "/home/ann/.local/state/nodeyard"],
] as const)("%s", (_, places, folder) => expect(stateFolder(places)).toBe(folder));
